"""Retries: only where nothing can have happened, bounded, visible, interruptible."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from schema.attempts import AttemptError
from sessions_app.execution import coordinator, retries
from sessions_app.live import nudge
from tests.execution.conftest import Chat, Gate, StubProvider, Worker, answers, fails
from tests.support.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def error(error_class: Any, reason: Any, retry_after: float | None = None) -> AttemptError:
    return AttemptError(error_class=error_class, reason=reason, message="No.", retry_after=retry_after)


@pytest.mark.parametrize(
    ("error_class", "reason", "is_retried"),
    [
        ("not_sent", "network", True),
        ("not_sent", "timeout", True),
        ("not_sent", "configuration", False),
        ("rejected", "rate_limit", True),
        ("rejected", "overloaded", True),
        ("rejected", "quota", False),
        ("rejected", "auth", False),
        ("rejected", "overflow", False),
        ("rejected", "bad_request", False),
        ("failed", "provider_error", False),
        ("ambiguous", "network", False),
        ("partial", "cut", False),
    ],
)
def test_only_what_provably_did_not_happen_is_retried(
    error_class: str, reason: str, is_retried: bool
) -> None:
    planned = retries.plan(error(error_class, reason), message_id="m", ordinal=1, now=NOW, jitter=0)

    assert (planned is not None) is is_retried


@pytest.mark.parametrize(
    ("ordinal", "retry_after", "jitter", "seconds"),
    [
        (1, None, 0, 2),
        (2, None, 0, 4),
        (4, None, 0, 16),
        (1, None, 1, 2.4),
        (1, None, -1, 1.6),
        (1, 30, 0, 30),
        (4, 3, 0, 16),
        (5, None, 0, None),
        (1, 901, 0, None),
    ],
)
def test_the_wait_doubles_the_provider_may_ask_for_more_and_both_are_bounded(
    ordinal: int, retry_after: float | None, jitter: float, seconds: float | None
) -> None:
    planned = retries.plan(
        error("rejected", "rate_limit", retry_after), message_id="m", ordinal=ordinal, now=NOW, jitter=jitter
    )

    assert (None if planned is None else planned.at - NOW) == (
        None if seconds is None else timedelta(seconds=seconds)
    )


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY_SECONDS", 0.01)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY_SECONDS", 100.0)
    monkeypatch.setattr(nudge, "interrupt", lambda **_: None)


@pytest.mark.both_databases
def test_a_retry_is_a_new_attempt_of_the_same_message(chat: Chat, provider: StubProvider, soon: None) -> None:
    provider.scripts = [fails("not_sent"), fails("rejected", "rate_limit"), answers("there")]

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "there"]
    assert len(chat.answers()) == 1
    assert [(each.ordinal, each.outcome) for each in chat.attempts()] == [
        (1, "not_sent"),
        (2, "failed"),
        (3, "completed"),
    ]
    assert len({call.request.attempt for call in provider.calls}) == 3
    assert chat.events().count("retry.scheduled") == 2


def test_retries_end_and_the_step_fails_with_the_reason(
    chat: Chat, provider: StubProvider, soon: None
) -> None:
    provider.scripts = [fails("rejected", "overloaded")]

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert len(provider.calls) == retries.MOST_ATTEMPTS
    assert chat.error()["reason"] == "overloaded"
    assert chat.row.owed_at is None


def test_a_retry_that_waits_is_visible_and_durable(
    chat: Chat, provider: StubProvider, worker: Worker, later: None
) -> None:
    provider.scripts = [fails("rejected", "rate_limit"), answers("there")]

    chat.say("Hi")
    until(lambda: chat.status().state == "retrying", what="the wait")

    status = chat.status()
    assert status.retry is not None
    assert (status.retry.attempt, status.retry.reason) == (2, "It did not work.")
    owed_at = chat.row.owed_at
    assert owed_at is not None
    assert owed_at > timezone.now() + timedelta(seconds=50)


def test_a_retry_that_waits_is_stopped_at_once(chat: Chat, provider: StubProvider, later: None) -> None:
    provider.scripts = [fails("rejected", "rate_limit")]
    chat.say("Hi")
    until(lambda: chat.status().state == "retrying")

    assert chat.stop()

    assert chat.settled().state == "idle"
    assert chat.answers()[0].state == "interrupted"
    assert len(provider.calls) == 1
    assert chat.row.owed_at is None


def test_a_stop_that_a_resume_took_back_does_not_start_the_retry_early(
    chat: Chat, provider: StubProvider, worker: Worker, later: None
) -> None:
    provider.scripts = [fails("rejected", "rate_limit"), answers("too early")]
    chat.say("Hi")
    until(lambda: chat.status().state == "retrying")
    drain = worker.running.drains[chat.id]
    waits_anew = drain._wait_until
    waits = []

    async def counted(at: Any) -> bool:
        waits.append(at)
        return await waits_anew(at)

    drain._wait_until = counted  # type: ignore[method-assign]

    # The nudge of the Stop reaches the drain after the resume took the Stop back.
    drain.coordinator.loop.call_soon_threadsafe(drain.cancel, "user")

    until(lambda: waits, what="the wait goes on")
    assert chat.status().state == "retrying"
    assert len(provider.calls) == 1
    assert chat.stop()
    chat.settled()


def test_a_shutdown_ends_the_wait_and_the_run_stays_owed_for_its_time(
    chat: Chat, provider: StubProvider, worker: Worker, later: None
) -> None:
    provider.scripts = [fails("rejected", "rate_limit"), answers("there")]
    chat.say("Hi")
    until(lambda: chat.status().state == "retrying")
    owed_at = chat.row.owed_at

    assert worker.stop(grace=10)

    assert chat.row.owed_at == owed_at
    assert chat.status().state == "queued"
    worker.start()
    coordinator.hand_over(chat.id)
    until(lambda: not worker.running.drains)
    assert len(provider.calls) == 1


def test_a_shutdown_that_comes_while_the_retry_is_stored_does_not_wait_for_it(
    chat: Chat, provider: StubProvider, worker: Worker, later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, running = retries.plan, worker.running

    def shut_down_meanwhile(*given: Any, **how: Any) -> Any:
        running.loop.call_soon_threadsafe(running.request_stop)
        return planned(*given, **how)

    monkeypatch.setattr(retries, "plan", shut_down_meanwhile)
    provider.scripts = [fails("rejected", "rate_limit")]

    chat.say("Hi")

    until(lambda: chat.row.owner_id is None and chat.row.owed_at is not None, what="the release")
    assert chat.row.owed_at > timezone.now() + timedelta(seconds=50)  # type: ignore[operator]
    assert chat.error()["reason"] == "shutdown"


def test_what_is_refused_during_a_shutdown_is_left_to_the_next_process(
    chat: Chat, provider: StubProvider, worker: Worker, later: None
) -> None:
    gate = Gate()
    provider.scripts = [fails("rejected", "rate_limit", gate=gate)]
    chat.say("Hi")
    until(lambda: gate.reached)
    worker.running.loop.call_soon_threadsafe(worker.running.request_stop)
    until(lambda: worker.running.is_stopping)

    gate.open()

    until(lambda: chat.row.owner_id is None)
    assert chat.row.owed_at > timezone.now() + timedelta(seconds=50)  # type: ignore[operator]
    assert chat.error()["reason"] == "shutdown"
    assert chat.status().state == "queued"


def test_nothing_is_retried_after_output(chat: Chat, provider: StubProvider, soon: None) -> None:
    provider.scripts = [fails("failed", "overloaded", after=("half",))]

    chat.say("Hi")

    chat.settled()
    assert len(provider.calls) == 1
    assert chat.texts() == ["Hi", "half"]
