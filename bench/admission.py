"""How many prompts a second the API admits: a real web process, 32 clients, one session each.

    python -m bench.admission [--clients N] [--seconds S] [--database sqlite|postgresql]...

The clients run beside the server on the same machine and are part of the figure. Keep-alive is used, as
every HTTP client does.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support import servers
from tests.support.processes import Instance

_WARM_UP_SECONDS: Final = 2.0


@dataclass
class Client:
    """One connection that sends one request after the other."""

    port: int
    token: str
    seconds_each: list[float] = field(default_factory=list)

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        data = json.dumps(body).encode()
        head = (
            f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Token {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self.writer.write(head.encode() + data)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin1")
        status = int(answer.split(" ", 2)[1])
        lengths = [line for line in answer.split("\r\n") if line.lower().startswith("content-length:")]
        return status, await self.reader.readexactly(int(lengths[0].split(":")[1]))

    async def admit_until(self, deadline: float, *, session: str) -> None:
        count = 0
        while (begin := time.perf_counter()) < deadline:
            count += 1
            status, answer = await self.post(f"/sessions/{session}/prompts", {"text": f"Prompt {count}"})
            assert status == 201, (status, answer)
            self.seconds_each.append(time.perf_counter() - begin)


@dataclass(frozen=True, kw_only=True)
class Figures:
    each: list[float]
    """Seconds of each admission, shortest first, all clients together."""
    cpu_seconds: float
    """What the web process used meanwhile; other load on the machine changes it little."""


async def load(instance: Instance, *, token: str, clients: int, seconds: float) -> Figures:
    crowd = [Client(port=instance.port, token=token) for _ in range(clients)]
    sessions = []
    for client in crowd:
        await client.connect()
        sessions.append(json.loads((await client.post("/sessions", {}))[1])["id"])
    pairs = list(zip(crowd, sessions, strict=True))
    web, before = instance.pid("web"), 0.0
    for phase in (_WARM_UP_SECONDS, seconds):
        before = _cpu_seconds(web)
        for client in crowd:
            client.seconds_each.clear()
        deadline = time.perf_counter() + phase
        await asyncio.gather(*(client.admit_until(deadline, session=session) for client, session in pairs))
    each = sorted(each for client in crowd for each in client.seconds_each)
    return Figures(each=each, cpu_seconds=_cpu_seconds(web) - before)


def _cpu_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(database: str) -> Iterator[tuple[Instance, str]]:
    """A new installation on a new database, and a token for it."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        url = stack.enter_context(servers.temporary_postgres_database()) if database == "postgresql" else ""
        instance = stack.enter_context(Instance.prepare(directory, database_url=url))
        instance.manage("migrate", "--verbosity", "0")
        instance.start("--web-only")
        instance.manage(
            "createsuperuser",
            "--noinput",
            DJANGO_SUPERUSER_USERNAME="bench",
            DJANGO_SUPERUSER_PASSWORD="only for this bench",
            DJANGO_SUPERUSER_EMAIL="bench@example.org",
        )
        yield instance, instance.manage("create_api_token", "bench").stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--database", action="append", choices=("sqlite", "postgresql"))
    options = parser.parse_args()
    run(tuple(options.database or ("sqlite", "postgresql")), options.clients, options.seconds)


def run(
    databases: tuple[str, ...] = ("sqlite", "postgresql"), clients: int = 32, seconds: float = 10
) -> None:
    print(
        f"{'database':<12}{'clients':>8}{'admitted/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'web CPU ms':>12}"
    )
    for database in databases:
        with served(database) as (instance, token):
            figures = asyncio.run(load(instance, token=token, clients=clients, seconds=seconds))
        each = figures.each
        cpu = 1000 * figures.cpu_seconds / len(each)
        rate = len(each) / seconds
        p50, p99, worst = (1000 * each[int(len(each) * part)] for part in (0.5, 0.99, 0.999999))
        print(f"{database:<12}{clients:>8}{rate:>12.0f}{p50:>9.1f}{p99:>9.1f}{worst:>9.1f}{cpu:>12.2f}")


if __name__ == "__main__":
    main()
