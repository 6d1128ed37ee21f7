"""Resume and Stop: what they promise about what runs and what waits."""

from functools import partial
from typing import Any

import pytest

from schema.attempts import StepError
from schema.events import StepEnded, StepFailed, StepStarted, ToolFailed, ToolInputEnded, ToolInputStarted
from sessions_app import identity, inbox, sessions
from sessions_app.execution import stages
from sessions_app.log import Held, SessionGone, session_transaction
from sessions_app.models import SessionMessage
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)


def resume(session_id: str) -> bool:
    return sessions.resume(session_id=session_id, now=world.NOW)


def interrupt(session_id: str, **arguments: Any) -> bool:
    return sessions.interrupt(session_id=session_id, now=world.NOW, **arguments)


def answered(
    held: Held, *, outcome: str = "completed", finish: str = "stop", hosted_call: bool | None = None
) -> None:
    """End a step for the newest prompt, with a call or without one, and release."""
    with world.transaction(held) as tx:
        message = identity.new_message_id()
        tx.append(StepStarted(message=message, agent="default", model="demo:scripted", step=1))
        if hosted_call is not None:
            call: Any = {"message": message, "part": identity.new_part_id()}
            tx.append(ToolInputStarted(**call, index=0, call_id="call_1", name="clock", hosted=hosted_call))
            tx.append(ToolInputEnded(**call, raw="{}"))
            tx.append(ToolFailed(**call, error="Not run.", unknown=False))
        if outcome == "completed":
            tx.append(StepEnded(message=message, finish=finish))
        else:
            error = StepError(reason="cut", message="Cut.")
            tx.append(StepFailed(message=message, outcome=outcome, error=error))  # type: ignore[arg-type]
        tx.set(owner_id=None)


def paused() -> tuple[str, str]:
    session_id = world.session()
    waiting = world.prompt(session_id)
    with session_transaction(session_id, now=world.NOW) as tx:
        inbox.pause(tx, up_to=tx.head_seq)
    world.forget_wakes(session_id)
    return session_id, waiting


# Resume


def test_resuming_lifts_a_pause_and_wakes() -> None:
    session_id, waiting = paused()

    assert resume(session_id)

    session = world.row(session_id)
    assert (session.hold_seq, session.owed_at) == (None, None)
    assert inbox.is_due(session, now=world.NOW)
    assert world.event_types(session_id)[-1] == "session.unpaused"
    assert world.wakes() == [session_id]
    assert [row.pk for row in inbox.promotable(session)] == [waiting]


def test_resuming_again_wakes_again_and_owes_no_second_run() -> None:
    session_id, _ = paused()
    resume(session_id)
    before = world.everything_of(session_id)

    assert resume(session_id)

    assert world.everything_of(session_id) == before
    assert world.wakes() == [session_id] * 2


def test_resuming_an_idle_session_says_that_there_is_nothing_to_run() -> None:
    empty = world.session()
    done = world.owned()
    answered(done)

    for session_id in (empty, done.session_id):
        before = world.everything_of(session_id)
        assert not resume(session_id)
        assert world.everything_of(session_id) == before
    assert done.session_id not in world.wakes()[1:]


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "unknown"])
def test_resuming_after_a_step_without_an_answer_asks_again_by_a_new_attempt(outcome: str) -> None:
    held = world.owned()
    answered(held, outcome=outcome)

    assert resume(held.session_id)

    assert world.row(held.session_id).owed_at == world.NOW
    assert SessionMessage.objects.filter(session_id=held.session_id, type="user").count() == 1


def test_resuming_runs_a_prompt_that_was_admitted_only() -> None:
    session_id = world.session()
    world.prompt(session_id, wake=False)

    assert resume(session_id)

    assert world.wakes() == [session_id]
    assert inbox.is_due(world.row(session_id), now=world.NOW)


@pytest.mark.parametrize("wake", [True, False])
def test_resuming_an_answered_session_begins_what_is_pending_and_answers_nothing_again(wake: bool) -> None:
    held = world.owned()
    answered(held)
    waiting = world.prompt(held.session_id, delivery="queue", wake=wake)
    world.change(held.session_id, hold_seq=world.row(held.session_id).head_seq, hold_reason="paused")

    assert resume(held.session_id)

    session = world.row(held.session_id)
    assert (session.owed_at, inbox.is_due(session, now=world.NOW)) == (None, True)
    begun = stages.begin(session_id=held.session_id, worker_id=held.worker_id, now=world.NOW)
    assert isinstance(begun, stages.Begun)
    assert world.input_row(waiting).promoted_seq is not None


@pytest.mark.parametrize("parked", [True, False])
@pytest.mark.parametrize(
    ("finish", "hosted_call"),
    [("tool_calls", None), ("paused", None), ("paused", True), ("missing", False), ("length", False)],
)
def test_resuming_a_turn_that_a_model_is_to_go_on_with_goes_on(
    finish: str, hosted_call: bool | None, parked: bool
) -> None:
    held = world.owned()
    answered(held, finish=finish, hosted_call=hosted_call)
    waiting = world.prompt(held.session_id, delivery="queue", wake=False)
    world.change(held.session_id, parked=parked)

    assert resume(held.session_id)

    session = world.row(held.session_id)
    assert (session.owed_at, session.parked) == (world.NOW, False)
    assert world.input_row(waiting).wake


def test_an_answer_with_calls_that_the_provider_made_is_whole() -> None:
    held = world.owned()
    answered(held, hosted_call=True)

    assert not resume(held.session_id)


def test_a_parked_session_with_nothing_to_run_is_parked_no_more() -> None:
    held = world.owned()
    answered(held)
    world.change(held.session_id, parked=True, recovery_count=4)
    world.forget_wakes(held.session_id)

    assert not resume(held.session_id)

    session = world.row(held.session_id)
    assert (session.parked, session.recovery_count, session.owed_at) == (False, 0, None)
    assert world.wakes() == []


def test_resuming_joins_what_runs() -> None:
    held = world.owned()
    world.forget_wakes(held.session_id)
    before = world.everything_of(held.session_id)

    assert resume(held.session_id)

    assert world.everything_of(held.session_id) == before
    assert world.wakes() == []


def test_resuming_takes_back_a_stop_that_was_not_served_yet() -> None:
    held = world.owned()
    waiting = world.prompt(held.session_id)
    interrupt(held.session_id)

    assert resume(held.session_id)

    assert stages.to_cancel(held=[held]) == set()
    with world.transaction(held) as tx:
        assert stages.proceed(tx)
    assert world.input_row(waiting).promoted_seq is not None


def test_resuming_what_is_already_being_stopped_asks_again_by_a_new_attempt() -> None:
    held = world.owned()
    interrupt(held.session_id)
    resume(held.session_id)

    assert serve_stop(held)

    session = world.row(held.session_id)
    assert (session.owner_id, session.owed_at, session.hold_seq) == (held.worker_id, world.NOW, None)


def test_resuming_lets_a_parked_session_run_again() -> None:
    session_id, _ = paused()
    world.change(session_id, parked=True, recovery_count=4)

    assert resume(session_id)

    assert (world.row(session_id).parked, world.row(session_id).recovery_count) == (False, 0)


def test_resuming_does_not_hurry_a_retry() -> None:
    session_id = world.session()
    world.change(session_id, owed_at=world.after(30))

    assert resume(session_id)

    assert world.row(session_id).owed_at == world.after(30)


# Stop


def test_a_stop_of_what_runs_is_a_durable_request_for_this_owner_and_moves_no_prompt() -> None:
    held = world.owned()
    waiting = world.prompt(held.session_id)
    head = world.row(held.session_id).head_seq

    assert interrupt(held.session_id, resume=True)

    session = world.row(held.session_id)
    assert (session.interrupt_fence, session.interrupt_seq, session.interrupt_resume) == (
        held.fence,
        head,
        True,
    )
    assert (session.owner_id, session.head_seq) == (held.worker_id, head)
    assert world.input_row(waiting).withdrawn_seq is None
    assert stages.to_cancel(held=[held]) == {held}


def test_a_stop_of_an_idle_session_does_nothing_and_says_so() -> None:
    session_id, quiet = world.session(), world.session()
    world.prompt(quiet, wake=False)
    already, _ = paused()
    for each in (session_id, quiet, already):
        before = world.everything_of(each)
        assert not interrupt(each)
        assert world.everything_of(each) == before


def test_a_stop_of_what_is_about_to_run_pauses_it_at_once() -> None:
    session_id, owed = world.session(), world.session()
    waiting = world.prompt(session_id)
    world.change(owed, owed_at=world.after(30))

    assert interrupt(session_id)
    assert interrupt(owed)

    for each in (session_id, owed):
        session = world.row(each)
        assert (session.hold_reason, session.owed_at) == ("paused", None)
        assert not inbox.is_due(session, now=world.after(3600))
    assert [row.pk for row in world.pending(session_id)] == [waiting]


def test_a_stop_or_resume_of_a_session_that_is_gone_is_refused() -> None:
    for verb in (resume, interrupt):
        with pytest.raises(SessionGone):
            verb(identity.new_session_id())


def test_nobody_elses_session_moves() -> None:
    session_id, strangers = world.session(), world.session()
    world.prompt(strangers)
    world.prompt(session_id)
    before = world.everything_of(strangers)

    interrupt(session_id)
    resume(session_id)

    assert world.everything_of(strangers) == before


# Stop against a prompt


def serve_stop(held: Held) -> bool:
    """What the owner does when it finds the request: True when it goes on draining."""
    with world.transaction(held) as tx:
        return stages.stop(tx)


@committing
def test_a_prompt_against_a_stop_runs_if_it_came_later_and_waits_if_it_came_before() -> None:
    held = world.owned()
    outcomes = set()
    with racing.Racers(2) as racers:
        for number in racing.rounds(2000, within=6):
            message_id = f"msg_against-a-stop-{number}"

            sent, interrupted = racers.round(
                partial(world.prompt, held.session_id, message_id=message_id),
                partial(interrupt, held.session_id),
            )

            assert (sent, interrupted) == (message_id, True)
            asked_at = world.row(held.session_id).interrupt_seq
            assert asked_at is not None
            came_later = world.input_row(message_id).admitted_seq > asked_at
            outcomes.add(came_later)
            assert serve_stop(held) is came_later
            session = world.row(held.session_id)
            assert (session.owner_id is not None) is came_later
            assert (world.input_row(message_id).promoted_seq is not None) is came_later
            assert (session.hold_reason == "paused") is not came_later
            held = running_again(held, message_id)
    assert outcomes == {True, False}


def running_again(held: Held, message_id: str) -> Held:
    """Back to an owner with nothing left to promote."""
    if world.row(held.session_id).owner_id is None:
        assert resume(held.session_id)
        held = world.take(held.session_id)
        assert world.promote(held) == [message_id]
    world.change(held.session_id, owed_at=None)
    world.forget_wakes(held.session_id)
    return held


@committing
def test_a_prompt_against_a_stop_without_an_owner_is_never_lost_nor_left_asleep() -> None:
    session_id = world.session()
    outcomes = set()
    with racing.Racers(2) as racers:
        for number in racing.rounds(2000, within=6):
            message_id = f"msg_against-a-pause-{number}"

            sent, interrupted = racers.round(
                partial(world.prompt, session_id, message_id=message_id), partial(interrupt, session_id)
            )

            assert sent == message_id
            outcomes.add(interrupted)
            session = world.row(session_id)
            assert world.pending(session_id).filter(pk=message_id).exists()
            if interrupted:
                assert session.hold_reason == "paused"
                assert not inbox.is_due(session, now=world.NOW)
            else:
                assert inbox.is_due(session, now=world.NOW)
                assert world.wakes() == [session_id]
            inbox.withdraw(session_id=session_id, message_id=message_id, now=world.NOW)
            world.change(session_id, hold_seq=None, hold_reason="")
            world.forget_wakes(session_id)
    assert outcomes == {True, False}
