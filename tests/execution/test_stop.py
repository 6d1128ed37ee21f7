"""Stop, shutdown, and a worker that lost what it drained."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from sessions_app import hooks, log, ownership, sessions
from sessions_app.execution import checkpoints, coordinator, stages
from sessions_app.live import nudge
from sessions_app.models import PartCheckpoint, Session, Worker
from sessions_app.providers import port
from tests.execution import conftest
from tests.execution.conftest import Call, Chat, Gate, StubProvider, answers, waits
from tests.support.waiting import until

pytestmark = pytest.mark.both_databases


@pytest.fixture
def no_nudge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that loses everything: what must happen happens at the heartbeat."""
    monkeypatch.setattr(nudge, "interrupt", lambda **_: None)


@pytest.fixture
def no_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody recovers what looks like an orphan: what is tested is the worker itself.

    Used by mark, so that it is there before the worker starts and looks for the first time.
    """
    monkeypatch.setattr(hooks, "_sweeps", [])
    monkeypatch.setattr(hooks, "_orphan_found", [])


def begin(chat: Chat, provider: StubProvider, *then: conftest.Script) -> Gate:
    gate = Gate()
    provider.scripts = [waits(gate, before=("half",)), *then]
    chat.say("Hi")
    until(lambda: gate.reached, what="the stream")
    return gate


def test_stop_keeps_what_was_received_and_closes_the_provider(
    chat: Chat, provider: StubProvider, no_nudge: None
) -> None:
    begin(chat, provider)

    assert chat.stop()

    assert chat.settled().state == "idle"
    assert provider.calls[0].closed
    assert chat.texts() == ["Hi", "half"]
    (answer,), (attempt,) = chat.answers(), chat.attempts()
    assert answer.state == "interrupted"
    assert (attempt.state, attempt.outcome, attempt.may_be_billed) == ("settled", "interrupted", True)
    assert chat.events()[-4:] == ["text.ended", "attempt.settled", "step.failed", "execution.interrupted"]


def test_stop_pauses_what_was_pending_and_resume_lets_it_go(
    chat: Chat, provider: StubProvider, no_nudge: None
) -> None:
    begin(chat, provider, answers("later"))
    chat.admit("waiting", delivery="queue")

    chat.stop()

    status = chat.settled()
    assert (status.state, status.paused, status.pending.queue) == ("idle", True, 1)
    assert len(provider.calls) == 1

    assert chat.resume()
    status = chat.settled()
    assert (status.paused, status.pending.queue) == (False, 0)
    assert "waiting" in chat.texts()


def test_a_prompt_sent_after_the_stop_is_answered(chat: Chat, provider: StubProvider, no_nudge: None) -> None:
    begin(chat, provider, answers("new answer"))
    chat.admit("before", delivery="queue")

    chat.stop()
    chat.say("after")

    status = chat.settled()
    assert (status.state, status.paused, status.pending.queue) == ("idle", False, 0)
    assert chat.texts()[:4] == ["Hi", "half", "after", "new answer"]


def test_stop_with_resume_runs_the_steers_and_leaves_the_queue_paused(
    chat: Chat, provider: StubProvider, no_nudge: None
) -> None:
    begin(chat, provider, answers("steered"))
    chat.admit("queued", delivery="queue")
    chat.admit("steer")

    chat.stop(resume=True)

    status = chat.settled()
    assert chat.texts() == ["Hi", "half", "steer", "steered"]
    assert (status.paused, status.pending.queue) == (True, 1)


def test_stop_of_an_idle_session_says_that_nothing_ran(chat: Chat) -> None:
    chat.say("Hi")
    chat.settled()
    before = chat.events()

    assert not chat.stop()

    assert chat.events() == before


def test_a_second_stop_changes_nothing_more(chat: Chat, provider: StubProvider, no_nudge: None) -> None:
    begin(chat, provider)
    chat.stop()
    chat.stop()
    chat.settled()

    assert not chat.stop()
    assert chat.events().count("execution.interrupted") == 1


def test_stop_of_what_waits_for_a_worker_pauses_it_at_once(chat: Chat, provider: StubProvider) -> None:
    chat.admit("Hi")

    assert chat.stop()

    status = chat.status()
    assert (status.state, status.paused, status.pending.steer) == ("idle", True, 1)


def test_a_nudge_stops_the_stream_without_waiting_for_a_heartbeat(
    chat: Chat, provider: StubProvider, fast: Any, worker: conftest.Worker, no_nudge: None
) -> None:
    begin(chat, provider)
    chat.stop()

    worker.on_loop(worker.running.on_nudge("interrupt", chat.id))

    chat.settled()
    assert provider.calls[0].closed


# Losing a session


@pytest.mark.usefixtures("no_recovery")
def test_a_worker_that_lost_the_fence_writes_nothing_more_and_closes_the_provider(
    chat: Chat, provider: StubProvider
) -> None:
    gate = begin(chat, provider)
    Session.objects.filter(pk=chat.id).update(fence=100)
    before = chat.events()

    gate.open()

    until(lambda: provider.calls[0].closed, what="the provider's connection to be closed")
    until(lambda: not coordinator.find().drains)  # type: ignore[union-attr]
    assert chat.events() == before
    # Give it back to nobody, so that the log is complete for the check that follows every test.
    Session.objects.filter(pk=chat.id).update(owner=None)


@pytest.mark.usefixtures("no_recovery")
def test_a_silent_stream_of_a_lost_session_is_closed_at_the_heartbeat(
    chat: Chat, provider: StubProvider
) -> None:
    begin(chat, provider)

    Session.objects.filter(pk=chat.id).update(fence=100)

    until(lambda: provider.calls[0].closed)
    assert chat.attempts()[0].state == "streaming"
    Session.objects.filter(pk=chat.id).update(owner=None)


def test_deleting_a_session_stops_its_stream(chat: Chat, provider: StubProvider) -> None:
    begin(chat, provider)

    sessions.delete(session_id=chat.id, now=timezone.now())

    until(lambda: provider.calls[0].closed)
    until(lambda: not coordinator.find().drains)  # type: ignore[union-attr]
    assert not Session.objects.filter(pk=chat.id).exists()


def test_a_checkpoint_of_a_lost_session_is_not_written(chat: Chat, provider: StubProvider) -> None:
    begin(chat, provider)
    until(lambda: PartCheckpoint.objects.filter(text="half").exists(), what="the checkpoint")
    part = PartCheckpoint.objects.get()
    row = chat.row
    stale = log.Held(session_id=chat.id, worker_id=str(row.owner_id), fence=row.fence - 1)

    checkpoints.write(checkpoints=[checkpoints.Checkpoint(held=stale, part_id=part.pk, text="stale")])

    part.refresh_from_db()
    assert part.text == "half"
    chat.stop()
    chat.settled()
    checkpoints.write(checkpoints=[checkpoints.Checkpoint(held=stale, part_id=part.pk, text="late")])
    assert not PartCheckpoint.objects.exists()


@pytest.mark.usefixtures("no_recovery")
def test_a_worker_declared_dead_registers_anew_and_goes_on_until_somebody_takes_over(
    chat: Chat, provider: StubProvider, worker: conftest.Worker
) -> None:
    gate = begin(chat, provider)
    first = worker.running.registration.worker_id

    Worker.objects.filter(pk=first).update(dead_at=timezone.now(), death="assumed")

    until(lambda: worker.running.registration.worker_id != first, what="a new registration")
    gate.open()
    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "halfdone"]


def test_a_worker_in_doubt_sends_nothing_until_it_renewed(
    chat: Chat, provider: StubProvider, worker: conftest.Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = True
    monkeypatch.setattr(ownership.Registration, "is_in_doubt", lambda self: doubt)

    chat.say("Hi")
    until(lambda: provider.calls, what="the request to be about to leave")
    until(lambda: [attempt.state for attempt in chat.attempts()] == ["prepared"])
    beats = Worker.objects.get().heartbeat_count
    until(lambda: Worker.objects.get().heartbeat_count > beats + 2)
    assert [attempt.state for attempt in chat.attempts()] == ["prepared"]

    doubt = False

    chat.settled()
    assert chat.texts() == ["Hi", "Hello"]


@pytest.mark.usefixtures("no_recovery")
def test_a_session_owned_but_not_drained_is_reported_as_a_stray(
    chat: Chat, provider: StubProvider, worker: conftest.Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(hooks, "_orphan_found", [lambda session_id, worker_id: found.append(session_id)])

    Session.objects.filter(pk=chat.id).update(owner=worker.running.registration.worker_id, fence=1)

    until(lambda: chat.id in found, what="the stray to be found")
    Session.objects.filter(pk=chat.id).update(owner=None)


@pytest.mark.usefixtures("no_recovery")
def test_a_session_that_was_taken_anew_between_two_looks_is_no_stray(
    chat: Chat, worker: conftest.Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    looks: list[int] = []
    monkeypatch.setattr(hooks, "_orphan_found", [lambda session_id, worker_id: found.append(session_id)])

    def owned(*, worker_id: str) -> set[tuple[str, int]]:
        looks.append(len(looks))
        return {(chat.id, looks[-1])}

    monkeypatch.setattr(ownership, "owned_sessions", owned)

    until(lambda: len(looks) > 4, what="some heartbeats")
    assert found == []


@pytest.mark.usefixtures("no_recovery")
def test_a_wake_that_meets_a_dead_owner_tells_recovery(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, worker: conftest.Worker
) -> None:
    found: list[str] = []
    monkeypatch.setattr(hooks, "_orphan_found", [lambda session_id, worker_id: found.append(session_id)])
    now = timezone.now()
    dead = Worker.objects.create(
        id="wrk_dead",
        host="h",
        boot_id="b",
        kind="worker",
        pid=1,
        lock_path="/nowhere",
        lock_device=0,
        lock_inode=0,
        started_at=now,
        heartbeat_at=now - timedelta(days=1),
        stopped_at=now,
    )
    Session.objects.filter(pk=chat.id).update(owner=dead, fence=1)

    chat.say("Hi")

    until(lambda: chat.id in found)
    assert chat.status().state == "orphaned"
    Session.objects.filter(pk=chat.id).update(owner=None)


# Shutdown


def test_a_step_that_ends_within_the_grace_time_is_kept_whole(
    chat: Chat, provider: StubProvider, worker: conftest.Worker
) -> None:
    gate = begin(chat, provider)
    chat.admit("next", delivery="queue")
    asyncio.run_coroutine_threadsafe(_open_when_stopping(worker.running, gate), worker.running.loop)

    assert worker.stop(grace=10)

    assert chat.texts() == ["Hi", "halfdone"]
    assert chat.answers()[0].state == "completed"
    assert chat.status().state == "queued"
    assert OrmQ.objects.count() >= 1


async def _open_when_stopping(running: coordinator.Coordinator, gate: Gate) -> None:
    while not running.is_stopping:  # noqa: ASYNC110 - set on the loop without an event
        await asyncio.sleep(0.005)
    gate.open()


def test_a_step_cut_by_a_shutdown_is_owed_and_the_next_process_goes_on(
    chat: Chat, provider: StubProvider, worker: conftest.Worker
) -> None:
    begin(chat, provider, answers("the rest"))
    OrmQ.objects.all().delete()

    assert worker.stop(grace=0)

    assert provider.calls[0].closed
    assert chat.status().state == "queued"
    assert OrmQ.objects.count() == 1
    assert not Worker.objects.filter(stopped_at=None).exists()
    assert (chat.answers()[0].state, chat.error()["reason"]) == ("interrupted", "shutdown")

    worker.start()
    coordinator.hand_over(chat.id)

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "half", "the rest"]
    assert "restarted" in provider.calls[1].request.turns[-1].text  # type: ignore[union-attr]
    assert chat.row.recovery_count == 0


@pytest.mark.usefixtures("no_recovery")
def test_a_wake_that_reaches_a_stopping_worker_goes_back_to_the_queue(
    chat: Chat, worker: conftest.Worker
) -> None:
    worker.on_loop(_request_stop(worker.running))
    chat.admit("Hi")
    OrmQ.objects.all().delete()

    from sessions_app.execution import tasks

    tasks.drain(chat.id)

    assert OrmQ.objects.count() == 1
    assert chat.status().state == "queued"


@pytest.mark.usefixtures("no_recovery")
def test_a_wake_that_joined_a_drain_after_its_last_look_goes_back_at_a_shutdown(
    chat: Chat, worker: conftest.Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def joined_too_late(drain: coordinator.Drain) -> None:
        drain.woken_again = True
        drain.coordinator.request_stop()

    monkeypatch.setattr(coordinator.Drain, "run", joined_too_late)
    chat.admit("Hi")
    OrmQ.objects.all().delete()

    coordinator.hand_over(chat.id)

    until(lambda: not worker.running.drains)
    assert OrmQ.objects.count() == 1


async def _request_stop(running: coordinator.Coordinator) -> None:
    running.request_stop()


def test_a_stop_during_the_shutdown_leaves_nothing_owed(
    chat: Chat, provider: StubProvider, worker: conftest.Worker, no_nudge: None, fast: Any
) -> None:
    begin(chat, provider)
    fast.HOLDFAST_HEARTBEAT_SECONDS = 1000

    chat.stop()
    worker.stop(grace=0)

    assert chat.row.owed_at is None
    assert chat.status().state == "idle"


async def never(call: Call) -> AsyncGenerator[port.Item]:
    await call.phases.dispatching()
    await asyncio.get_running_loop().create_future()
    yield port.Finished("stop")


@pytest.mark.parametrize("policy", ["continue", "ask"])
def test_a_stop_that_was_asked_for_before_the_stream_broke_is_answered_with_no_continuation(
    chat: Chat, provider: StubProvider, no_nudge: None, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "to_cancel", lambda **_: set())
    gate = Gate()
    provider.scripts = [conftest.fails("partial", after=("half",), gate=gate), answers("goes on")]
    sessions.update(session_id=chat.id, now=timezone.now(), recovery_policy=policy)
    chat.say("Hi")
    until(lambda: gate.reached, what="the stream")

    assert chat.stop()
    gate.open()

    assert chat.settled().state == "needs_decision"
    assert len(provider.calls) == 1
    assert chat.events()[-1] == "execution.interrupted"


def test_a_look_at_an_earlier_drain_cancels_no_later_one(
    chat: Chat, provider: StubProvider, worker: conftest.Worker
) -> None:
    gate = begin(chat, provider)
    (drain,) = worker.running.drains.values()
    assert drain.held is not None
    earlier = log.Held(session_id=chat.id, worker_id=drain.held.worker_id, fence=drain.held.fence - 1)

    worker.on_loop(_cancel(worker.running, {earlier}))
    gate.open()

    assert chat.settled().state == "idle"
    assert chat.texts()[-1] == "halfdone"


async def _cancel(running: coordinator.Coordinator, over: set[log.Held]) -> None:
    running._cancel(over)
