"""What a turn costs in commits, statements and bytes: stable figures, so they are asserted."""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from sessions_app.execution import step
from sessions_app.models import SessionEvent
from sessions_app.providers import port
from tests.execution.conftest import Call, Chat, StubProvider, Worker

CHUNKS = 200


class Counts:
    def __init__(self) -> None:
        self.commits = 0
        self.statements = 0

    def reset(self) -> None:
        self.commits = self.statements = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements += 1
        return execute(sql, params, many, context)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch, fast: Any) -> Iterator[Counts]:
    """Counts in every thread that opens its connection from here on: those of the worker."""
    counts = Counts()
    commit = BaseDatabaseWrapper.commit

    def counted(self: BaseDatabaseWrapper) -> None:
        counts.commits += 1
        commit(self)

    def watch(connection: BaseDatabaseWrapper, **_: object) -> None:
        connection.execute_wrappers.append(counts)

    monkeypatch.setattr(BaseDatabaseWrapper, "commit", counted)
    connection_created.connect(watch)
    yield counts
    connection_created.disconnect(watch)


async def call_then_answer(call: Call) -> AsyncGenerator[port.Item]:
    await call.phases.dispatching()
    await call.phases.response_started(status=200, request_id=None, headers={})
    if call.request.turns[-1].role == "result":
        for number in range(CHUNKS):
            yield port.TextDelta("text", f"word{number} ")
        yield port.Finished("stop")
        return
    yield port.CallStarted("call", f"call_{call.request.attempt}", "calculator")
    yield port.CallDelta("call", '{"expression": "6*7"}')
    yield port.PartClosed("call")
    yield port.Finished("tool_calls")


@pytest.fixture
def quiet(fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No heartbeat, sweep or checkpoint falls into what is counted, and no output comes late."""
    monkeypatch.setattr(step, "JOIN_SECONDS", 1000)
    fast.HOLDFAST_HEARTBEAT_SECONDS = 1000
    fast.HOLDFAST_LEASE_SECONDS = 10_000
    fast.HOLDFAST_SWEEP_SECONDS = 1000
    fast.HOLDFAST_CHECKPOINT_SECONDS = 1000


@pytest.mark.both_databases
def test_a_turn_with_a_tool_costs_what_it_costs_however_long_the_conversation_is(
    counts: Counts, quiet: None, chat: Chat, provider: StubProvider, worker: Worker
) -> None:
    provider.scripts = [call_then_answer]
    chat.say("Warm up")
    chat.settled()
    costs = []
    for number in range(6):
        before = sum(len(str(data)) for data in SessionEvent.objects.values_list("data", flat=True))
        counts.reset()
        chat.say(f"What is six times seven, {number}?")
        chat.settled()
        after = sum(len(str(data)) for data in SessionEvent.objects.values_list("data", flat=True))
        costs.append((counts.commits, after - before))

    commits, written = zip(*costs, strict=True)
    assert set(commits) == {11}
    assert max(written) - min(written) <= 8
    assert max(written) < 6 * 1024
