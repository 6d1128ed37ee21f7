"""Outcomes that become unknown while their process lives: same policy, same budget, same notice."""

from typing import Any

import pytest

from recovery import decisions, recover
from schema.events import AttemptResumed
from sessions_app import hooks, inbox
from sessions_app.execution import stages
from tests.recovery import losses
from tests.recovery.losses import LATER, Lost
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

BUDGET = 3


@pytest.fixture(autouse=True)
def policy(settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "continue"
    settings.HOLDFAST_RECOVERY_BUDGET = BUDGET


def tell(lost: Lost, *, source: str = "", is_shutdown: bool = False) -> bool:
    """What a recorder does in the transaction that fails the step; True when the drain goes on."""
    unknown = hooks.Unknown(source=source or lost.attempt, message_id=lost.message, is_shutdown=is_shutdown)
    with world.transaction(lost.held, now=LATER) as tx:
        stages.outcome_unknown(tx, unknown)
        if is_shutdown:
            stages.hand_on(tx)
            return False
        return stages.proceed(tx)


def test_it_continues_with_one_input_named_after_the_attempt_and_is_counted() -> None:
    lost = Lost().unknown()

    assert tell(lost)

    assert lost.continuations() == [recover.continuation_id(lost.attempt)]
    assert lost.row.recovery_count == 1
    assert lost.row.owner_id == lost.owner
    assert lost.attempt_row().decision["policy"] is True  # type: ignore[index]
    assert lost.step().notice


def test_what_crashes_and_what_is_lost_alive_share_one_budget() -> None:
    lost = Lost().unknown()
    losses.set_count(lost.id, BUDGET - 1)
    assert tell(lost)
    lost.streaming().dies()

    assert lost.recovered().outcome == "parked"


def test_over_budget_it_is_parked_and_released_whatever_is_pending() -> None:
    lost = Lost().unknown()
    pending = losses.person_prompts(lost.id)
    losses.lose_all_wakes()
    losses.set_count(lost.id, BUDGET)

    assert not tell(lost)

    row = lost.row
    assert (row.parked, row.owner_id, row.owed_at, row.recovery_count) == (True, None, None, BUDGET)
    assert world.input_row(pending).promoted_seq is None
    assert lost.continuations() == []
    assert lost.status() == "needs_decision"


@pytest.mark.parametrize("policy", ["ask", "off"])
def test_what_policy_leaves_to_people_is_not_counted_and_not_continued(policy: Any) -> None:
    lost = Lost(recovery_policy=policy).unknown()

    assert not tell(lost)

    assert lost.row.owner_id is None
    assert (lost.row.recovery_count, lost.continuations()) == (0, [])
    assert lost.attempt_row().decision is None
    assert lost.status() == {"ask": "needs_decision", "off": "idle"}[policy]


def test_what_was_pending_waits_for_the_decision_under_ask_and_not_under_off() -> None:
    asking, off = Lost(recovery_policy="ask").unknown(), Lost(recovery_policy="off").unknown()
    for lost in (asking, off):
        losses.person_prompts(lost.id, delivery="queue")

    assert not tell(asking)
    assert tell(off)

    assert asking.row.hold_reason == "undecided"
    decisions.decide_attempt(
        session_id=asking.id, attempt_id=asking.attempt, action="abandon", by="ann", now=LATER
    )
    assert inbox.is_due(asking.row, now=LATER)


def test_an_attempt_that_offered_hosted_tools_is_left_to_people_unless_the_agent_says_otherwise() -> None:
    name = losses.agent(continues_after_effects=True)
    careful, bold = Lost(), Lost(agent=name)
    for lost in (careful, bold):
        lost.unknown(hosted_tools=True)

    assert not tell(careful)
    assert tell(bold)

    assert careful.status() == "needs_decision"
    assert len(bold.continuations()) == 1


def test_a_waiting_steer_of_the_user_takes_the_continuations_place() -> None:
    lost = Lost().unknown()
    steer = losses.person_prompts(lost.id)

    assert tell(lost)

    assert lost.continuations() == []
    assert world.input_row(steer).promoted_seq is not None


@pytest.mark.parametrize("count", [0, BUDGET])
def test_a_call_that_a_shutdown_had_to_cut_goes_by_the_policy_and_spends_no_budget(count: int) -> None:
    lost = Lost()
    lost.unknown_calls("idempotent")
    losses.set_count(lost.id, count)

    tell(lost, source=lost.message, is_shutdown=True)

    row = lost.row
    assert (row.owner_id, row.parked, row.recovery_count) == (None, False, count)
    assert lost.continuations() == [recover.continuation_id(lost.message)]
    assert world.wakes() == [lost.id]


def test_a_cut_call_with_a_side_effect_waits_for_a_person_after_a_shutdown() -> None:
    lost = Lost()
    lost.unknown_calls("side_effect")

    tell(lost, source=lost.message, is_shutdown=True)

    assert (lost.row.owner_id, lost.row.owed_at, world.wakes()) == (None, None, [])
    assert lost.status() == "needs_decision"


def asked_again() -> Lost:
    """A person abandoned an attempt and had its provider asked all the same, which began to tell."""
    lost = Lost().unknown()
    decisions.decide_attempt(
        session_id=lost.id, attempt_id=lost.attempt, action="abandon", by="ann", now=LATER
    )
    lost.write(AttemptResumed(attempt=lost.attempt, message=lost.message, keeps_parts=True))
    return lost


def test_what_a_person_abandoned_is_not_continued_when_asking_again_ends_unknown_too() -> None:
    lost = asked_again()
    lost.unknown_again()

    assert not tell(lost)

    assert lost.continuations() == []
    assert (lost.row.owed_at, lost.row.recovery_count) == (None, 0)


def test_a_crash_while_an_abandoned_attempt_is_asked_about_leaves_it_abandoned() -> None:
    lost = asked_again().dies()

    assert lost.recovered().outcome == "closed"

    assert lost.is_at_rest()
    assert lost.continuations() == []
    assert lost.row.owed_at is None
    attempt = lost.attempt_row()
    assert (attempt.state, attempt.decision["by"]) == ("unknown", "ann")  # type: ignore[index]
