import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Final

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from sessions_app.tools import declare as declare_module
from sessions_app.tools import enter as enter_module
from sessions_app.tools import threads
from sessions_app.tools.declare import tool
from sessions_app.tools.enter import Failed, Succeeded, enter
from sessions_app.tools.port import INTERRUPTED, OutcomeUnknown, Output, Tool, ToolContext
from tests.support.waiting import until
from tests.tools.calls import call, context

WITHIN: Final = 5.0


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets functions go that block their thread."""
    event = threading.Event()
    yield event
    event.set()


def blocking(release: threading.Event, **options: object) -> Tool:
    def block() -> str:
        """Block."""
        release.wait(30)
        return "late"

    return declare_module.declare(block, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("effect", "known"), [("read", True), ("idempotent", False), ("side_effect", False)])
async def test_a_timeout_is_unknown_unless_the_tool_only_reads(effect: str, known: bool) -> None:
    async def slow() -> None:
        """Be slow."""
        await asyncio.sleep(30)

    slow_tool = declare_module.declare(slow, effect=effect, timeout_seconds=0.05)  # type: ignore[arg-type]

    assert await call(slow_tool) == Failed(error="Tool execution timed out after 0.05 seconds", known=known)


async def test_a_function_that_blocks_its_thread_times_out_and_the_loop_goes_on(
    release: threading.Event,
) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    entered = await call(blocking(release, timeout_seconds=0.3))
    ticking.cancel()

    assert entered == Failed(error="Tool execution timed out after 0.3 seconds", known=False)
    assert ticks > 10


async def test_a_result_in_the_last_moment_counts() -> None:
    @tool(timeout_seconds=0.05)
    async def stubborn() -> str:
        """Answer when told to end."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
        return "all the same"

    assert await call(stubborn) == Succeeded(output=Output(content="all the same"))


async def test_an_error_that_the_cancellation_caused_proves_nothing() -> None:
    @tool(timeout_seconds=0.05)
    async def broken() -> None:
        """Break when told to end."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None

    assert await call(broken) == Failed(error="Tool execution timed out after 0.05 seconds", known=False)


async def test_a_cancelled_call_tells_the_function_and_is_raised() -> None:
    told = asyncio.Event()
    begun = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            told.set()

    entering = asyncio.create_task(enter(wait, {}, context()))
    await begun.wait()
    entering.cancel()

    with pytest.raises(asyncio.CancelledError):
        await entering
    assert told.is_set()


async def test_a_function_that_will_not_end_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enter_module, "CANCEL_GRACE_SECONDS", 0.05)
    let_go = asyncio.Event()

    @tool(timeout_seconds=0.05)
    async def deaf() -> None:
        """Do not listen."""
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        raise ValueError("nobody hears this")

    started = time.monotonic()
    assert await call(deaf) == Failed(error="Tool execution timed out after 0.05 seconds", known=False)
    assert time.monotonic() - started < WITHIN

    let_go.set()
    left_behind = list(enter_module._left_behind)
    assert left_behind
    await asyncio.wait(left_behind)
    await asyncio.sleep(0)
    assert not enter_module._left_behind


async def test_a_second_cancellation_while_the_function_ends_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enter_module, "CANCEL_GRACE_SECONDS", 0.1)
    begun = asyncio.Event()

    @tool(timeout_seconds=0.01)
    async def slow_to_end() -> str:
        """Take a while to end."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            begun.set()
            await asyncio.sleep(0.05)
        return "done"

    entering = asyncio.create_task(enter(slow_to_end, {}, context()))
    await begun.wait()
    entering.cancel()

    with pytest.raises(asyncio.CancelledError):
        await entering


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_outcome_that_the_tool_cannot_tell_is_unknown(is_async: bool) -> None:
    def sync() -> None:
        """Do."""
        raise OutcomeUnknown("cut")

    async def asynchronous() -> None:
        """Do."""
        raise OutcomeUnknown("cut")

    declared = declare_module.declare(asynchronous if is_async else sync)

    assert await call(declared) == Failed(error=INTERRUPTED, known=False)


async def test_a_function_that_cancels_itself_is_unknown_and_the_caller_goes_on() -> None:
    @tool
    async def cancels() -> None:
        """Cancel."""
        raise asyncio.CancelledError

    assert await call(cancels) == Failed(error=INTERRUPTED, known=False)


async def test_an_error_of_bytes_or_of_many_words_is_told_in_short() -> None:
    async def enter_bytes(_given: object, _context: ToolContext) -> Output:
        return Output(content=b"\x00" * 5000, is_error=True)

    async def enter_text(_given: object, _context: ToolContext) -> Output:
        return Output(content="ä" * 100_000, is_error=True)

    for entrance in (enter_bytes, enter_text):
        entered = await enter(
            Tool(
                name="t", description="d", parameters={}, effect="read",
                normalise=lambda given: given, enter=entrance,
            ),
            {}, context(),
        )  # fmt: skip
        assert isinstance(entered, Failed)
        assert entered.known
        assert len(entered.error.encode()) < 4200


# Threads


async def _abandon(pool: threads.ToolThreads, release: threading.Event) -> None:
    begun = threading.Event()

    def block() -> None:
        begun.set()
        release.wait(30)

    running = asyncio.create_task(pool.run(block, name="block", wait_seconds=0))
    await asyncio.to_thread(begun.wait, WITHIN)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_calls_left_behind_give_their_place_back_up_to_a_bound(release: threading.Event) -> None:
    pool = threads.ToolThreads(running=2, abandoned=3)

    for _ in range(5):
        await _abandon(pool, release)

    assert pool.abandoned == 5
    with pytest.raises(threads.NoThread):
        await pool.run(lambda: "never entered", name="next", wait_seconds=0.05)

    release.set()
    until(lambda: pool.abandoned == 0, what="all places given back")
    for _ in range(3):
        assert await pool.run(lambda: "entered", name="next", wait_seconds=0) == "entered"


async def test_a_call_waits_for_a_place(release: threading.Event) -> None:
    pool = threads.ToolThreads(running=1, abandoned=0)
    first = asyncio.create_task(pool.run(lambda: release.wait(30), name="first", wait_seconds=0))
    await asyncio.sleep(0)
    second = asyncio.create_task(pool.run(lambda: "second", name="second", wait_seconds=WITHIN))
    await asyncio.sleep(0)

    release.set()

    assert await second == "second"
    await first


async def test_a_call_without_a_place_is_known_not_to_have_run(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = threads.ToolThreads(running=1, abandoned=0)
    monkeypatch.setattr(declare_module, "THREADS", pool)
    await _abandon(pool, release)

    entered = await call(blocking(release, timeout_seconds=0.2))

    assert isinstance(entered, Failed)
    assert entered.known
    assert entered.error.startswith("The tool was not run")


async def test_many_calls_at_once_never_have_more_threads_than_places() -> None:
    pool = threads.ToolThreads(running=4, abandoned=0)
    lock, running, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1

    await asyncio.gather(*(pool.run(work, name="work", wait_seconds=WITHIN) for _ in range(60)))

    assert most == 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
@pytest.mark.parametrize("fails", [False, True])
async def test_a_thread_leaves_no_connection_of_the_database_open(fails: bool) -> None:
    used: list[BaseDatabaseWrapper] = []

    @tool
    def ask() -> None:
        """Ask the database."""
        used.append(connections["default"])
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
        if fails:
            raise ValueError

    await call(ask)

    (wrapper,) = used
    assert wrapper is not connections["default"]
    assert wrapper.connection is None
