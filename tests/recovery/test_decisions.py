"""What a decision sets going: what waited behind it, a parked session, the model that now knows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from recovery import decisions
from schema.problems import AlreadyDecided, NotUnknown, Superseded
from sessions_app import history, inbox, sessions
from sessions_app.models import MessagePart
from tests.recovery import losses
from tests.recovery.losses import LATER, Lost
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def policy(settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "ask"


def decide(lost: Lost, action: Any, **more: Any) -> Any:
    return decisions.decide_attempt(
        session_id=lost.id, attempt_id=lost.attempt, action=action, by="ann", now=LATER, **more
    )


def mark(lost: Lost, call: str, action: Any = "mark_done", **more: Any) -> MessagePart:
    return decisions.decide_call(session_id=lost.id, call_id=call, action=action, by="ann", now=LATER, **more)


def held(lost: Lost) -> str:
    """A prompt that waits behind what is undecided."""
    pending = losses.person_prompts(lost.id, delivery="queue")
    lost.released(hold=True)
    assert not inbox.has_promotable(lost.row)
    return pending


def test_what_waited_goes_on_once_the_last_unknown_is_decided() -> None:
    lost = Lost()
    first, second = lost.unknown_calls("side_effect", "side_effect")
    pending = held(lost)

    mark(lost, first)
    assert not inbox.is_due(lost.row, now=LATER)
    assert (lost.row.owed_at, world.wakes()) == (None, [])

    mark(lost, second, "mark_not_done")
    assert [row.pk for row in inbox.promotable(lost.row)] == [pending]
    assert lost.row.owed_at == LATER
    assert world.wakes() == [lost.id]


def test_an_abandoned_attempt_owes_nothing_and_lets_go_what_waited() -> None:
    lost = Lost().unknown()
    pending = held(lost)

    decide(lost, "abandon")

    assert lost.row.owed_at is None
    assert [row.pk for row in inbox.promotable(lost.row)] == [pending]
    assert world.wakes() == [lost.id]


def test_a_retry_is_a_new_input_and_the_old_attempt_stays_as_it_is() -> None:
    lost = Lost().unknown().released()

    decide(lost, "retry")

    (retry,) = lost.row.inputs.filter(origin="retry")
    assert retry.wake
    assert lost.attempt_row().state == "unknown"
    assert lost.row.attempts.count() == 1
    assert world.wakes() == [lost.id]


def test_a_retry_while_another_unknown_is_undecided_goes_past_what_is_held() -> None:
    lost = Lost()
    lost.unknown_calls("side_effect")
    lost.unknown()
    pending = held(lost)

    decide(lost, "retry")

    assert lost.row.hold_reason == "undecided"
    promotable = [row.pk for row in inbox.promotable(lost.row)]
    assert pending not in promotable
    assert len(promotable) == 1


@pytest.mark.parametrize("action", ["abandon", "retry"])
def test_a_decision_lets_a_parked_session_run_again(action: str) -> None:
    lost = Lost().unknown()
    losses.person_prompts(lost.id, delivery="queue")
    lost.released()
    world.change(lost.id, parked=True, recovery_count=4)

    decide(lost, action)

    assert (lost.row.parked, lost.row.recovery_count) == (False, 0)
    assert world.wakes() == [lost.id]


def test_a_mark_lets_a_parked_session_run_again() -> None:
    lost = Lost()
    (call,) = lost.unknown_calls("side_effect")
    lost.released()
    world.change(lost.id, parked=True)

    mark(lost, call)

    assert not lost.row.parked
    assert inbox.is_due(lost.row, now=LATER)


def test_an_answered_question_lets_a_parked_session_run_again() -> None:
    lost = Lost().streaming()
    call = lost.call("mail", waits=True)
    lost.completed().released()
    world.change(lost.id, parked=True, recovery_count=4)

    sessions.answer_call(session_id=lost.id, call_id=call, action="approve", by="ann", now=LATER)

    assert (lost.row.parked, lost.row.recovery_count) == (False, 0)
    assert inbox.is_due(lost.row, now=LATER)


def test_a_decision_on_something_older_settles_a_parked_session_first_and_then_runs_it() -> None:
    lost = Lost().unknown()
    older = lost.attempt
    lost.streaming().text().dies()
    world.change(lost.id, parked=True)

    decisions.decide_attempt(session_id=lost.id, attempt_id=older, action="abandon", by="ann", now=LATER)

    assert lost.recovered().outcome == "resumed"
    assert lost.is_at_rest()
    assert inbox.is_due(lost.row, now=LATER)


def test_what_is_not_settled_yet_cannot_be_decided() -> None:
    lost = Lost().streaming().dies()
    with pytest.raises(NotUnknown):
        decide(lost, "abandon")

    lost.recovered()

    decide(lost, "abandon")


def test_the_model_is_told_what_was_decided() -> None:
    lost = Lost()
    done, not_done = lost.unknown_calls("side_effect", "side_effect")
    lost.released()

    mark(lost, done, result={"sent": 1})
    mark(lost, not_done, "mark_not_done")

    told = [
        str(getattr(turn, "output", ""))
        for turn in history.lower(history.select(lost.id), model=losses.MODEL)
        if turn.role == "result"
    ]
    assert len(told) == 2
    assert told[0] != told[1]
    assert '"sent"' in told[0]


def test_a_decision_of_the_policy_is_told_to_the_person_who_comes_second() -> None:
    lost = Lost(recovery_policy="continue").streaming().dies()
    lost.recovered()

    with pytest.raises(AlreadyDecided) as refused:
        decide(lost, "retry")

    assert refused.value.decision["by"] == "recovery policy"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_decide_at_once_one_decides_and_the_other_is_told() -> None:
    for _ in racing.rounds(15, within=8):
        lost = Lost().unknown().released()

        outcomes = racing.together([partial(decide, lost, "retry"), partial(decide, lost, "abandon")])

        refused = [each for each in outcomes if isinstance(each, AlreadyDecided)]
        assert len(refused) == 1, outcomes
        kept = lost.attempt_row().decision["action"]  # type: ignore[index]
        assert refused[0].decision["action"] == kept
        assert lost.row.inputs.filter(origin="retry").count() == int(kept == "retry")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ["retry", "abandon"])
def test_a_decision_and_a_prompt_at_once_both_hold_in_some_order(action: str) -> None:
    for _ in racing.rounds(15, within=8):
        lost = Lost().unknown()
        held(lost)
        prompt: Callable[[], str] = partial(losses.person_prompts, lost.id, "At once")

        outcomes = racing.together([partial(decide, lost, action), prompt])

        assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
        assert lost.attempt_row().decision is not None
        assert lost.row.hold_seq is None
        assert inbox.is_due(lost.row, now=LATER)


@pytest.mark.django_db(transaction=True)
def test_of_two_last_marks_at_once_exactly_one_owes_the_run() -> None:
    for _ in racing.rounds(15, within=8):
        lost = Lost()
        calls = lost.unknown_calls("side_effect", "idempotent")
        lost.released()
        losses.lose_all_wakes()

        outcomes = racing.together([partial(mark, lost, call) for call in calls])

        assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
        assert lost.row.owed_at == LATER
        assert world.wakes() == [lost.id]


def test_a_retry_after_a_newer_turn_is_superseded_and_stays_undecided() -> None:
    lost = Lost().unknown()
    losses.person_prompts(lost.id)
    with world.transaction(lost.held, now=LATER) as tx:
        inbox.promote(tx)

    with pytest.raises(Superseded):
        decide(lost, "retry")

    assert lost.attempt_row().decision is None
    decide(lost, "abandon")
