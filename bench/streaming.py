"""Many sessions that stream at once from one worker process, each with a WebSocket reader.

    python -m bench.streaming [--sessions N]... [--words N] [--delay MS]

A delta's delay is the time from its publication in the worker to its arrival at a reader on the same
machine; the readers share the two cores with the server and are part of the figure.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import connect

from bench.admission import Client
from tests.support.processes import PROJECT, Instance
from tests.support.waiting import until

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CLIENTS: Final = 8


@dataclass
class Reader:
    """One reader: what it saw, and when."""

    session: str
    arrivals: list[tuple[str, int, float]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    seqs: list[int] = field(default_factory=list)
    answers: int = 0

    def take(self, frame: dict[str, Any]) -> None:
        kind = frame["t"]
        if kind == "delta":
            self.arrivals.append((frame["part"], frame["offset"], time.monotonic()))
            known = self.texts.get(frame["part"], "")
            assert frame["offset"] == len(known), "a gap reached the reader"
            self.texts[frame["part"]] = known + frame["text"]
        elif kind == "open":
            self.texts[frame["part"]] = frame["text"]
        elif kind == "event":
            self._take_event(frame["event"])

    def _take_event(self, event: dict[str, Any]) -> None:
        self.seqs.append(event["seq"])
        if event["type"] == "text.ended":
            self.texts[event["data"]["part"]] = event["data"]["text"]
        self.answers += event["type"] == "step.ended"

    @property
    def is_answered(self) -> bool:
        return self.answers > 0


@dataclass(frozen=True)
class Figures:
    sessions: int
    complete: int
    seconds: float
    p50: float
    p99: float
    worst: float
    worker_mb: float
    web_mb: float
    worker_cpu: float
    web_cpu: float


@contextmanager
def installation() -> Iterator[tuple[Instance, str, Path]]:
    """A web process as ``up`` starts it, and one worker whose publications are traced."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        directory = Path(name)
        trace = directory / "trace"
        with Instance.prepare(
            directory, HOLDFAST_BENCH_TRACE=str(trace), HOLDFAST_DRAINS_PER_WORKER="2000"
        ) as instance:
            instance.manage("migrate", "--verbosity", "0")
            instance.start("--web-only")
            instance.manage(
                "createsuperuser",
                "--noinput",
                DJANGO_SUPERUSER_USERNAME="bench",
                DJANGO_SUPERUSER_PASSWORD="only for this bench",
                DJANGO_SUPERUSER_EMAIL="bench@example.org",
            )
            token = instance.manage("create_api_token", "bench").stdout.strip()
            with instance.log.open("ab") as log:
                worker = subprocess.Popen(
                    [sys.executable, "-m", "bench.traced_worker", "--workers", "1"],
                    cwd=PROJECT,
                    env=instance.environ | {"HOLDFAST_ROLE": "worker"},
                    stdout=log,
                    stderr=log,
                )
            try:
                until(lambda: instance.processes("worker"), within=30, what="the worker")
                yield instance, token, trace
            finally:
                worker.terminate()
                worker.wait(30)


async def stream(instance: Instance, token: str, *, sessions: int, words: int, delay: int) -> list[Reader]:
    """Connect a reader to each of the sessions, prompt them all, read until all are answered."""
    crowd = [Client(port=instance.port, token=token) for _ in range(_CLIENTS)]
    for client in crowd:
        await client.connect()
    readers: list[Reader] = []
    sockets: list[Any] = []

    async def open_some(client: Client, count: int) -> None:
        for _ in range(count):
            session = json.loads((await client.post("/sessions", {}))[1])["id"]
            ticket = json.loads((await client.post(f"/sessions/{session}/ticket", {}))[1])["ticket"]
            url = f"ws://127.0.0.1:{instance.port}/ws/sessions/{session}?after=0&ticket={ticket}"
            sockets.append(await connect(url, max_size=None, compression=None, ping_interval=None))
            readers.append(Reader(session))

    await asyncio.gather(*(open_some(client, sessions // _CLIENTS) for client in crowd))
    reading = [asyncio.ensure_future(_read(*pair)) for pair in zip(sockets, readers, strict=True)]
    text = f"[[words {words}]] [[delay {delay}]]"
    prompts = iter(readers)

    async def prompt_some(client: Client) -> None:
        for reader in prompts:
            status, answer = await client.post(f"/sessions/{reader.session}/prompts", {"text": text})
            assert status == 201, answer

    await asyncio.gather(*(prompt_some(client) for client in crowd))
    async with asyncio.timeout(120):
        await asyncio.gather(*reading)
    for socket in sockets:
        await socket.close()
    return readers


async def _read(socket: Any, reader: Reader) -> None:
    async for frame in socket:
        reader.take(json.loads(frame))
        if reader.is_answered:
            return


def measure(sessions: int, words: int, delay: int) -> Figures:
    with installation() as (instance, token, trace):
        worker, web = instance.pid("worker"), instance.pid("web")
        before = (_cpu_seconds(worker), _cpu_seconds(web))
        begin = time.monotonic()
        readers = asyncio.run(stream(instance, token, sessions=sessions, words=words, delay=delay))
        seconds = time.monotonic() - begin
        cpu = (_cpu_seconds(worker) - before[0], _cpu_seconds(web) - before[1])
        memory = (_resident_mb(worker), _resident_mb(web))
        delays = _delays(trace, readers)
    answer = " ".join(str(number) for number in range(1, words + 1))
    complete = sum(
        reader.seqs == list(range(1, len(reader.seqs) + 1)) and answer in reader.texts.values()
        for reader in readers
    )
    return Figures(
        sessions=len(readers),
        complete=complete,
        seconds=seconds,
        p50=_percentile(delays, 0.5),
        p99=_percentile(delays, 0.99),
        worst=delays[-1] if delays else 0.0,
        worker_mb=memory[0],
        web_mb=memory[1],
        worker_cpu=cpu[0],
        web_cpu=cpu[1],
    )


def _delays(trace: Path, readers: list[Reader]) -> list[float]:
    published = {}
    for line in trace.read_text(encoding="ascii").splitlines():
        part, offset, at = line.split()
        published[part, int(offset)] = float(at)
    return sorted(
        arrived - published[part, offset]
        for reader in readers
        for part, offset, arrived in reader.arrivals
        if (part, offset) in published
    )


def _percentile(ordered: list[float], part: float) -> float:
    return 1000 * ordered[int(len(ordered) * part)] if ordered else 0.0


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def run(sizes: tuple[int, ...] = (504, 1000), words: int = 50, delay: int = 100) -> None:
    print(
        f"{'sessions':>8}{'complete':>10}{'seconds':>9}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}"
        f"{'worker MB':>11}{'web MB':>8}{'worker CPU s':>14}{'web CPU s':>11}"
    )
    for size in sizes:
        found = measure(size, words, delay)
        print(
            f"{found.sessions:>8}{found.complete:>10}{found.seconds:>9.1f}{found.p50:>9.1f}{found.p99:>9.1f}"
            f"{1000 * found.worst:>9.1f}{found.worker_mb:>11.0f}{found.web_mb:>8.0f}"
            f"{found.worker_cpu:>14.1f}{found.web_cpu:>11.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, action="append")
    parser.add_argument("--words", type=int, default=50)
    parser.add_argument("--delay", type=int, default=100)
    options = parser.parse_args()
    run(tuple(options.sessions or (504, 1000)), options.words, options.delay)


if __name__ == "__main__":
    main()
