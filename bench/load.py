"""Many users at once on the embedded default: each with a WebSocket, prompts at a steady rate, answers that stream.

    python -m bench load [--users N] [--rate PROMPTS_A_SECOND] [--seconds S]

Prompts are sent when they are due, whether or not earlier ones were answered, and their latency counts from
then. A delta's delay is the time from its publication in a worker to its arrival at the reader. The users
share the machine with the server and are part of the figures. Ends with 1 when anything failed or was lost.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bench.admission import Client
from bench.streaming import Reader
from tests.support.processes import PROJECT, Instance
from tests.support.waiting import until

_PROMPT: Final = "[[words 20]] [[delay 50]]"
_WORKERS: Final = 2
"""As ``manage.py up`` starts them."""
_OPENED_AT_ONCE: Final = 20
_LONGEST_END_SECONDS: Final = 60.0

_USERS: Final = """
from django.contrib.auth.models import User
from django.utils import timezone
from sessions_app import access
for number in range({count}):
    user = User.objects.create(username=f"user-{{number}}")
    print(access.create_token(user_id=user.pk, name="bench", now=timezone.now()).secret)
"""


@dataclass
class Person:
    """One user: a connection for prompts, a socket for the answers."""

    client: Client
    session: str = ""
    socket: Any = None
    reader: Reader = field(default_factory=lambda: Reader(""))
    admitted: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def join(self, port: int) -> None:
        await self.client.connect()
        self.session = json.loads((await self.client.post("/sessions", {}))[1])["id"]
        ticket = json.loads((await self.client.post(f"/sessions/{self.session}/ticket", {}))[1])["ticket"]
        url = f"ws://127.0.0.1:{port}/ws/sessions/{self.session}?after=0&ticket={ticket}"
        self.socket = await connect(url, max_size=None, compression=None, ping_interval=None)

    async def read(self) -> None:
        async for frame in self.socket:
            self.reader.take(json.loads(frame))

    async def prompt(self, due: float) -> float:
        """Seconds from when it was due to its admission."""
        async with self.lock:
            status, answer = await self.client.post(f"/sessions/{self.session}/prompts", {"text": _PROMPT})
        assert status == 201, (status, answer)
        self.admitted += 1
        return time.monotonic() - due


@dataclass
class Figures:
    admissions: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lost: int = 0
    events: int = 0
    answers: int = 0
    memory: dict[str, float] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return not self.errors and not self.lost


@contextmanager
def installation(users: int) -> Iterator[tuple[Instance, list[str], Path]]:
    """Web and workers as ``up`` starts them, the workers' publications traced, and a token for each user."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        trace = Path(name) / "trace"
        with Instance.prepare(Path(name), HOLDFAST_BENCH_TRACE=str(trace)) as instance:
            instance.start("--web-only")
            made = instance.manage("shell", "--no-imports", "--command", _USERS.format(count=users))
            with instance.log.open("ab") as log:
                worker = subprocess.Popen(
                    [sys.executable, "-m", "bench.traced_worker", "--workers", str(_WORKERS)],
                    cwd=PROJECT, env=instance.environ | {"HOLDFAST_ROLE": "worker"}, stdout=log, stderr=log,
                )  # fmt: skip
            try:
                until(lambda: len(instance.processes("worker")) == _WORKERS, within=60, what="the workers")
                yield instance, made.stdout.split(), trace
            finally:
                worker.terminate()
                worker.wait(30)


def measure(*, users: int, rate: float, seconds: float) -> Figures:
    with installation(users) as (instance, tokens, trace):
        people = [Person(Client(port=instance.port, token=token)) for token in tokens]
        figures = asyncio.run(_load(instance, people, rate=rate, seconds=seconds))
        for role in ("web", "worker"):
            figures.memory[role] = max(_peak_mb(process.pid) for process in instance.processes(role))
        figures.delays = _delays(trace, people)
    return figures


async def _load(instance: Instance, people: Sequence[Person], *, rate: float, seconds: float) -> Figures:
    figures = Figures()
    for start in range(0, len(people), _OPENED_AT_ONCE):
        await asyncio.gather(*(each.join(instance.port) for each in people[start : start + _OPENED_AT_ONCE]))
    reading = [asyncio.ensure_future(each.read()) for each in people]
    begin = time.monotonic() + 1
    sending = []
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        sending.append(asyncio.ensure_future(people[number % len(people)].prompt(due)))
    for answer in await asyncio.gather(*sending, return_exceptions=True):
        if isinstance(answer, BaseException):
            figures.errors.append(f"a prompt: {answer!r}")
        else:
            figures.admissions.append(answer)
    await _finish(people, figures)
    for each, read in zip(people, reading, strict=True):
        await each.socket.close()
        ended = (await asyncio.gather(read, return_exceptions=True))[0]
        if isinstance(ended, BaseException) and not isinstance(ended, ConnectionClosed):
            figures.errors.append(f"a reader: {ended!r}")
    return figures


async def _finish(people: Sequence[Person], figures: Figures) -> None:
    """Wait until nothing runs and every reader has all that is stored, and count what is missing."""
    deadline = time.monotonic() + _LONGEST_END_SECONDS
    for each in people:
        status, head = "", -1
        while time.monotonic() < deadline:
            answer = json.loads((await each.client.post(f"/sessions/{each.session}/wait", {"timeout": 5}))[1])
            status, head = answer["state"], answer["head_seq"]
            if status == "idle" and len(each.reader.seqs) >= head:
                break
            await asyncio.sleep(0.05)
        if status != "idle":
            figures.errors.append(f"{each.session} is {status}")
        seen = each.reader.seqs
        figures.events += len(seen)
        figures.answers += each.reader.answers
        figures.lost += len(set(range(1, head + 1)) - set(seen)) + (len(seen) - len(set(seen)))


def _delays(trace: Path, people: Sequence[Person]) -> list[float]:
    published = {}
    for line in trace.read_text(encoding="ascii").splitlines():
        part, offset, at = line.split()
        published[part, int(offset)] = float(at)
    arrivals = (arrival for each in people for arrival in each.reader.arrivals)
    return [at - published[part, offset] for part, offset, at in arrivals if (part, offset) in published]


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return 1000 * ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else 0.0


def run(*, users: int = 200, rate: float = 50, seconds: float = 60) -> bool:
    """Whether nothing failed and nothing was lost."""
    found = measure(users=users, rate=rate, seconds=seconds)
    print(f"{users} users with WebSockets, {rate:g} prompts a second for {seconds:g} s")
    for name, values in (("admission", found.admissions), ("delta delay", found.delays)):
        p50, p99 = (_percentile(values, part) for part in (0.5, 0.99))
        print(f"{name:<14}{len(values):>8} measured   p50 {p50:>8.1f} ms   p99 {p99:>8.1f} ms")
    for role, peak in found.memory.items():
        print(f"memory {role:<10}{peak:>5.0f} MB at most in one process")
    print(
        f"events {found.events}, answers {found.answers}, lost events {found.lost}, errors {len(found.errors)}"
    )
    for error in found.errors[:10]:
        print(f"  {error}")
    return found.is_clean


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args(arguments)
    sys.exit(0 if run(users=options.users, rate=options.rate, seconds=options.seconds) else 1)


if __name__ == "__main__":
    main()
