"""What a durable turn costs: a prompt, one tool call, 200 chunks, no delay.

    python -m bench.turns [--database sqlite|postgresql]... [--sessions N]...

One worker's coordinator in this process, a provider that answers at once, so that what is measured is
Holdfast alone. Beside it, in the same run, a bare log: as many commits of one small row as a turn has,
from as many threads as the coordinator has for its database work.
"""

import argparse
import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from bench import apart

CHUNKS: Final = 200
SIZES: Final = (1, 16, 128)
LONG: Final = 200
DATABASE_THREADS: Final = 8
ANSWER_SECONDS: Final = 120


def run(databases: tuple[str, ...] = ("sqlite", "postgresql"), sizes: tuple[int, ...] = SIZES) -> None:
    """See apart.run."""
    arguments = [text for size in sizes for text in ("--sessions", str(size))]
    apart.run("bench.turns", databases=databases, arguments=arguments, HOLDFAST_ROLE="worker")


class AtOnce:
    """Calls a tool in the first step, answers in 200 chunks in the second, without any delay."""

    name = "bench"

    def digest(self, request: Any) -> str:
        return "0" * 64

    async def stream(self, request: Any, phases: Any) -> AsyncGenerator[Any]:
        from sessions_app.providers import port

        await phases.dispatching()
        await phases.response_started(status=200, request_id=None, headers={})
        if request.turns[-1].role == "result":
            for number in range(CHUNKS):
                yield port.TextDelta("text", f"word{number} ")
            yield port.Finished("stop")
            return
        yield port.CallStarted("call", f"call_{request.attempt}", "calculator")
        yield port.CallDelta("call", '{"expression": "6*7"}')
        yield port.PartClosed("call")
        yield port.Finished("tool_calls")


def inside(database: str, sizes: tuple[int, ...]) -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from sessions_app.execution import coordinator
    from sessions_app.providers import registry

    call_command("migrate", verbosity=0)
    provider = AtOnce()
    registry.resolve = lambda model: (provider, "bench")  # type: ignore[assignment]
    user = User.objects.create_user("bench")
    coordinator.start()
    try:
        _measure(database, user.pk, sizes)
    finally:
        coordinator.stop(5)


def _measure(database: str, user_id: int, sizes: tuple[int, ...]) -> None:
    commits = _commits_of_one_turn(user_id)
    print(f"{database}: {commits} commits a turn")
    print(f"{'sessions':>8}{'turns/s':>10}{'ms a turn':>11}{'bare log turns/s':>18}")
    for size in sizes:
        rate = _rate(user_id, size)
        print(f"{size:>8}{rate:>10.0f}{1000 * size / rate:>11.1f}{_bare_rate(size, commits):>18.0f}")
    _growth(user_id)


def _rate(user_id: int, size: int) -> float:
    turns = max(2, 256 // size)
    chats = [_Chat(user_id) for _ in range(size)]
    begin = time.perf_counter()
    if size == 1:
        for number in range(turns):
            chats[0].say(_question(number))
    else:
        asyncio.run(_all_at_once(chats, turns))
    return size * turns / (time.perf_counter() - begin)


async def _all_at_once(chats: "list[_Chat]", turns: int) -> None:
    """They admit on a few threads, as the API's requests do; to wait for an answer takes none."""
    with ThreadPoolExecutor(min(len(chats), DATABASE_THREADS)) as pool:
        await asyncio.gather(*(chat.say_all(turns, pool) for chat in chats))


def _question(number: int) -> str:
    return f"Turn {number}: what is six times seven?"


class _Chat:
    """One session; waits for the end of each turn by an event of its log, not by asking."""

    def __init__(self, user_id: int) -> None:
        from django.utils import timezone

        from sessions_app import sessions

        self.id = sessions.create(user_id=user_id, now=timezone.now()).session.pk

    async def say_all(self, turns: int, pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        for number in range(turns):
            ended = asyncio.Event()
            _waiting[self.id] = partial(loop.call_soon_threadsafe, ended.set)
            await loop.run_in_executor(pool, self._admit, _question(number))
            async with asyncio.timeout(ANSWER_SECONDS):
                await ended.wait()

    def say(self, text: str) -> None:
        ended = threading.Event()
        _waiting[self.id] = ended.set
        self._admit(text)
        assert ended.wait(ANSWER_SECONDS), "a turn did not end"

    def _admit(self, text: str) -> None:
        from django.utils import timezone

        from sessions_app import sessions
        from sessions_app.execution import coordinator

        sessions.prompt(session_id=self.id, text=text, now=timezone.now())
        coordinator.hand_over(self.id)


_waiting: dict[str, Callable[[], Any]] = {}


def _listen() -> None:
    from sessions_app import log

    def told(session_id: str, events: Any) -> None:
        for event in events:
            if event.type == "step.ended" and event.data["finish"] == "stop":
                _waiting[session_id]()

    log.on_commit(told)


def _commits_of_one_turn(user_id: int) -> int:
    """Counted at the database's own commit, the admission included."""
    from django.db.backends.base.base import BaseDatabaseWrapper

    _listen()
    chat = _Chat(user_id)
    chat.say("Warm up")
    commit, count = BaseDatabaseWrapper.commit, 0

    def counted(self: Any) -> None:
        nonlocal count
        count += 1
        commit(self)

    BaseDatabaseWrapper.commit = counted  # type: ignore[method-assign]
    try:
        chat.say("Count")
    finally:
        BaseDatabaseWrapper.commit = commit  # type: ignore[method-assign]
    return count


def _bare_rate(size: int, commits: int) -> float:
    """Turns a second of a log that commits one row as often as a turn does and nothing else."""
    from django.db import connection, transaction
    from django.utils import timezone

    from sessions_app.models import Tombstone

    turns, threads = 300, 1 if connection.vendor == "sqlite" else min(size, DATABASE_THREADS)

    def write(number: int) -> None:
        for step in range(commits):
            with transaction.atomic():
                Tombstone.objects.create(id=f"t{size}-{number}-{step}", deleted_at=timezone.now())

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(turns)))
    return turns / (time.perf_counter() - begin)


def _growth(user_id: int) -> None:
    """What a long conversation writes: bytes of the turn's rows, early and late."""
    chat = _Chat(user_id)
    sizes = []
    for number in range(LONG):
        before = _written()
        chat.say(f"Turn {number}")
        sizes.append(_written() - before)
    tenth = LONG // 10
    early, late = sum(sizes[:tenth]) / tenth, sum(sizes[-tenth:]) / tenth
    print(f"bytes a turn of a {LONG}-turn conversation: first tenth {early:.0f}, last tenth {late:.0f}")


def _written() -> int:
    """SQLite: bytes of the file's pages in use. PostgreSQL: bytes of the write-ahead log."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA page_count")
            pages = cursor.fetchone()[0]
            cursor.execute("PRAGMA page_size")
            return int(pages * cursor.fetchone()[0])
        cursor.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return int(cursor.fetchone()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", action="append", choices=("sqlite", "postgresql"))
    parser.add_argument("--sessions", type=int, action="append")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = tuple(options.sessions or SIZES)
    if options.inside:
        inside(options.inside, sizes)
    else:
        run(tuple(options.database or ("sqlite", "postgresql")), sizes)


if __name__ == "__main__":
    main()
