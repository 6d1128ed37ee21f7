"""The plan of a recovery as a table: what was found decides what is settled and how it goes on."""

from dataclasses import replace
from typing import Any, Final

import pytest

from recovery import plan
from recovery.plan import (
    Action,
    EndStep,
    EndText,
    FailCall,
    FailStep,
    FoundAttempt,
    FoundMessage,
    FoundPart,
    SettleAttempt,
    Snapshot,
)

OPEN: Final = FoundMessage(id="msg_open", seq=10, has_completed_attempt=False)
ANSWERED: Final = replace(OPEN, has_completed_attempt=True)


def attempt(state: str = "streaming", **fields: Any) -> FoundAttempt:
    described: dict[str, Any] = {
        "id": f"att_{state}", "message_id": OPEN.id, "purpose": "step", "state": state,
        "has_response": state == "streaming", "hosted_tools": False,
    }  # fmt: skip
    return FoundAttempt(**(described | fields))


def part(kind: str = "tool", state: str = "running", **fields: Any) -> FoundPart:
    described: dict[str, Any] = {
        "id": f"prt_{kind}", "message_id": OPEN.id, "kind": kind, "state": state, "approval": "",
        "hosted": False, "effect": "side_effect" if state == "running" else "",
    }  # fmt: skip
    return FoundPart(**(described | fields))


def snapshot(**fields: Any) -> Snapshot:
    described: dict[str, Any] = {
        "policy": "continue", "continues_after_effects": False, "is_over_budget": False,
        "is_asked_to_stop": False, "is_run_owed": False, "has_waiting_steer": False, "newest_turn_seq": 10,
    }  # fmt: skip
    return Snapshot(**(described | fields))


def found(*things: FoundMessage | FoundPart | FoundAttempt, **fields: Any) -> Snapshot:
    return snapshot(
        messages=tuple(thing for thing in things if isinstance(thing, FoundMessage)),
        parts=tuple(thing for thing in things if isinstance(thing, FoundPart)),
        attempts=tuple(thing for thing in things if isinstance(thing, FoundAttempt)),
        **fields,
    )


PREPARED: Final = attempt("prepared")
DISPATCHED: Final = attempt("dispatched")
STREAMING: Final = attempt("streaming")
TEXT: Final = part("text", "open", text="So far")
REASONING: Final = part("reasoning", "open", text="Hm")
NOT_ENTERED: Final = part(state="pending")
READING: Final = part(effect="read")
IDEMPOTENT: Final = part(effect="idempotent")
EFFECT: Final = part(effect="side_effect")
HOSTED: Final = part(state="pending", hosted=True)
HOSTED_RUNNING: Final = part(hosted=True)
WAITING: Final = part(id="prt_waiting", state="pending", approval="waiting")
APPROVED: Final = part(id="prt_approved", state="pending", approval="approved")
DENIED: Final = part(id="prt_denied", state="pending", approval="denied")
TITLE: Final = attempt("streaming", id="att_title", message_id=None, purpose="title")


def failed(outcome: Any, message: FoundMessage = OPEN, *, superseded: bool = False) -> FailStep:
    return FailStep(message=message, outcome=outcome, superseded=superseded)


@pytest.mark.parametrize(
    ("situation", "actions", "go_on"),
    [
        pytest.param(found(), [], "nothing", id="nothing unfinished, nothing owed"),
        pytest.param(found(is_run_owed=True), [], "owe", id="a promoted input without an answer"),
        pytest.param(
            found(OPEN, PREPARED),
            [SettleAttempt(attempt=PREPARED, unknown=False), failed("interrupted")],
            "owe",
            id="prepared was never sent",
        ),
        pytest.param(
            found(OPEN, DISPATCHED),
            [SettleAttempt(attempt=DISPATCHED, unknown=True), failed("unknown")],
            "continue",
            id="dispatched is unknown",
        ),
        pytest.param(
            found(OPEN, STREAMING, REASONING, TEXT),
            [
                EndText(part=REASONING),
                EndText(part=TEXT),
                SettleAttempt(attempt=STREAMING, unknown=True),
                failed("unknown"),
            ],
            "continue",
            id="a stream ends with what was kept of it",
        ),
        pytest.param(
            found(OPEN, STREAMING, NOT_ENTERED),
            [
                FailCall(part=NOT_ENTERED, unknown=False),
                SettleAttempt(attempt=STREAMING, unknown=True),
                failed("unknown"),
            ],
            "continue",
            id="a call whose arguments were still arriving was not run",
        ),
        pytest.param(
            found(OPEN, is_run_owed=True),
            [failed("interrupted")],
            "owe",
            id="a retry that waits for its time",
        ),
        pytest.param(
            found(ANSWERED, READING),
            [FailCall(part=READING, unknown=False), EndStep(message=ANSWERED)],
            "owe",
            id="an entered call that only reads",
        ),
        pytest.param(
            found(ANSWERED, NOT_ENTERED),
            [FailCall(part=NOT_ENTERED, unknown=False), EndStep(message=ANSWERED)],
            "owe",
            id="a call that was not entered",
        ),
        pytest.param(
            found(ANSWERED, IDEMPOTENT),
            [FailCall(part=IDEMPOTENT, unknown=True), EndStep(message=ANSWERED)],
            "continue",
            id="an entered idempotent call",
        ),
        pytest.param(
            found(ANSWERED, EFFECT),
            [FailCall(part=EFFECT, unknown=True), EndStep(message=ANSWERED)],
            "ask",
            id="an entered call with a side effect",
        ),
        pytest.param(
            found(ANSWERED, EFFECT, continues_after_effects=True),
            [FailCall(part=EFFECT, unknown=True), EndStep(message=ANSWERED)],
            "continue",
            id="an entered call with a side effect, whose agent goes on",
        ),
        pytest.param(
            found(ANSWERED), [EndStep(message=ANSWERED)], "owe", id="settled calls without a following step"
        ),
        pytest.param(
            found(OPEN, STREAMING, HOSTED),
            [
                FailCall(part=HOSTED, unknown=True),
                SettleAttempt(attempt=STREAMING, unknown=True),
                failed("unknown"),
            ],
            "ask",
            id="a hosted call counts as entered",
        ),
        pytest.param(
            found(OPEN, STREAMING, HOSTED_RUNNING, continues_after_effects=True),
            [
                FailCall(part=HOSTED_RUNNING, unknown=True),
                SettleAttempt(attempt=STREAMING, unknown=True),
                failed("unknown"),
            ],
            "continue",
            id="a hosted call, whose agent goes on",
        ),
        pytest.param(
            found(OPEN, attempt(hosted_tools=True)),
            [SettleAttempt(attempt=attempt(hosted_tools=True), unknown=True), failed("unknown")],
            "ask",
            id="an attempt that offered hosted tools",
        ),
        pytest.param(found(ANSWERED, WAITING), [], "nothing", id="a call that waits for a person stays"),
        pytest.param(found(ANSWERED, APPROVED), [], "owe", id="an approved call stays and is owed"),
        pytest.param(found(ANSWERED, DENIED), [], "owe", id="a denied call stays and is owed"),
        pytest.param(
            found(ANSWERED, WAITING, READING, NOT_ENTERED),
            [FailCall(part=READING, unknown=False), FailCall(part=NOT_ENTERED, unknown=False)],
            "nothing",
            id="beside a call that waits the others end",
        ),
        pytest.param(
            found(ANSWERED, WAITING, EFFECT),
            [FailCall(part=EFFECT, unknown=True)],
            "ask",
            id="beside a call that waits an entered one is unknown",
        ),
        pytest.param(
            found(ANSWERED, replace(APPROVED, state="running", effect="side_effect")),
            [
                FailCall(part=replace(APPROVED, state="running", effect="side_effect"), unknown=True),
                EndStep(message=ANSWERED),
            ],
            "ask",
            id="an approved call that was entered is unknown",
        ),
        pytest.param(
            found(TITLE), [SettleAttempt(attempt=TITLE, unknown=True)], "nothing", id="an attempt of no step"
        ),
    ],
)
def test_what_was_found_says_what_is_settled_and_how_it_goes_on(
    situation: Snapshot, actions: list[Action], go_on: str
) -> None:
    made = plan.make(situation)

    assert list(made.actions) == actions
    assert made.go_on == go_on
    assert plan.make(situation) == made


UNKNOWN: Final[list[tuple[Any, ...]]] = [
    (OPEN, STREAMING),
    (ANSWERED, IDEMPOTENT),
    (ANSWERED, EFFECT),
    (OPEN, attempt(hosted_tools=True)),
]
KNOWN: Final[list[tuple[Any, ...]]] = [(OPEN, PREPARED), (ANSWERED, READING), (ANSWERED,), (OPEN,)]


@pytest.mark.parametrize("things", UNKNOWN)
@pytest.mark.parametrize("policy", ["ask", "off"])
@pytest.mark.parametrize("continues", [True, False])
def test_what_is_unknown_goes_by_the_policy_whatever_the_agent_says(
    things: Any, policy: str, continues: bool
) -> None:
    made = plan.make(found(*things, policy=policy, continues_after_effects=continues))

    assert made.go_on == policy
    assert not made.admits_continuation


@pytest.mark.parametrize("things", UNKNOWN)
def test_what_is_unknown_continues_when_the_agent_says_so(things: Any) -> None:
    made = plan.make(found(*things, continues_after_effects=True))

    assert made.go_on == "continue"
    assert made.admits_continuation
    assert made.unknown_attempts + made.unknown_calls


@pytest.mark.parametrize("things", KNOWN)
@pytest.mark.parametrize("policy", ["continue", "ask", "off"])
def test_where_nothing_is_unknown_a_run_is_owed_under_every_policy(things: Any, policy: str) -> None:
    made = plan.make(found(*things, policy=policy))

    assert made.go_on == "owe"
    assert not made.admits_continuation
    assert made.unknown_attempts == made.unknown_calls == ()


@pytest.mark.parametrize("things", UNKNOWN + KNOWN)
@pytest.mark.parametrize("policy", ["continue", "ask", "off"])
def test_over_budget_everything_is_settled_all_the_same_and_nothing_goes_on(things: Any, policy: str) -> None:
    made = plan.make(found(*things, policy=policy, is_over_budget=True, is_run_owed=True))

    assert made.go_on == "park"
    assert not made.admits_continuation
    assert made.actions == plan.make(found(*things)).actions


@pytest.mark.parametrize("things", UNKNOWN + KNOWN)
def test_an_unserved_stop_ends_everything_and_nothing_continues(things: Any) -> None:
    made = plan.make(found(*things, is_asked_to_stop=True, is_run_owed=True, continues_after_effects=True))

    assert made.go_on == "paused"
    assert not made.admits_continuation
    assert [type(action) for action in made.actions][-1] is FailStep


@pytest.mark.parametrize("call", [WAITING, APPROVED, DENIED])
def test_an_unserved_stop_ends_calls_that_waited_for_a_person(call: FoundPart) -> None:
    """Left open in a closed step, a late answer would let them loose."""
    made = plan.make(found(ANSWERED, call, is_asked_to_stop=True))

    assert made.actions == (FailCall(part=call, unknown=False), failed("interrupted", ANSWERED))


@pytest.mark.parametrize("things", UNKNOWN)
@pytest.mark.parametrize("policy", ["ask", "off"])
def test_what_a_person_let_run_again_after_it_was_parked_is_not_asked_about_again(
    things: Any, policy: str
) -> None:
    made = plan.make(found(*things, policy=policy, is_wanted_again=True))

    assert made.go_on == "owe"
    assert not made.admits_continuation


def test_what_a_person_let_run_again_is_asked_about_where_its_provider_can_tell() -> None:
    asked = replace(STREAMING, can_be_asked=True)

    made = plan.make(found(OPEN, asked, policy="ask", is_wanted_again=True))

    assert (made.go_on, made.inquiry) == ("inquire", asked.id)


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("may_repeat", [False, True])
@pytest.mark.parametrize("can_be_asked", [False, True])
@pytest.mark.parametrize("policy", ["continue", "ask", "off"])
def test_policy_says_how_an_unknown_outcome_goes_on(
    policy: plan.Policy, can_be_asked: bool, may_repeat: bool, continues: bool
) -> None:
    chosen = plan.by_policy(
        policy=policy,
        continues_after_effects=continues,
        may_repeat_an_effect=may_repeat,
        can_be_asked=can_be_asked,
    )

    if policy == "off":
        assert chosen == "off"
    elif can_be_asked:
        assert chosen == "inquire"
    elif policy == "ask" or (may_repeat and not continues):
        assert chosen == "ask"
    else:
        assert chosen == "continue"


def test_what_a_person_let_run_again_continues_where_policy_does() -> None:
    assert plan.make(found(OPEN, STREAMING, is_wanted_again=True)).go_on == "continue"
    assert plan.make(found(ANSWERED, EFFECT, is_wanted_again=True)).go_on == "owe"


def test_a_waiting_steer_of_the_user_takes_the_continuations_place() -> None:
    made = plan.make(found(OPEN, STREAMING, has_waiting_steer=True))

    assert made.go_on == "continue"
    assert not made.admits_continuation
    assert made.unknown_attempts == (STREAMING.id,)


@pytest.mark.parametrize("older", [OPEN, ANSWERED])
def test_an_older_step_that_a_newer_turn_superseded_is_closed_and_nothing_continues_it(
    older: FoundMessage,
) -> None:
    made = plan.make(found(older, newest_turn_seq=11))

    assert made.actions == (failed("interrupted", older, superseded=True),)
    assert made.go_on == "nothing"


def test_of_several_open_steps_only_the_newest_goes_on() -> None:
    newest = FoundMessage(id="msg_newest", seq=20, has_completed_attempt=True)
    older = replace(OPEN, seq=5)

    made = plan.make(found(older, newest, newest_turn_seq=20))

    assert made.actions == (failed("interrupted", older, superseded=True), EndStep(message=newest))
    assert made.go_on == "owe"


@pytest.mark.parametrize("call", [WAITING, APPROVED, DENIED])
def test_calls_that_waited_in_a_superseded_step_are_not_run(call: FoundPart) -> None:
    made = plan.make(found(ANSWERED, call, newest_turn_seq=11))

    assert made.actions == (
        FailCall(part=call, unknown=False),
        failed("interrupted", ANSWERED, superseded=True),
    )


def test_a_superseded_step_with_an_unknown_call_still_goes_by_the_policy() -> None:
    made = plan.make(found(ANSWERED, EFFECT, newest_turn_seq=11))

    assert made.go_on == "ask"
    assert made.unknown_calls == (EFFECT.id,)


def test_an_unknown_attempt_of_no_step_is_abandoned_and_asks_nobody() -> None:
    made = plan.make(found(OPEN, PREPARED, TITLE))

    assert made.abandoned == (TITLE.id,)
    assert made.unknown_attempts == ()
    assert made.go_on == "owe"


def test_the_plan_counts_what_was_found() -> None:
    made = plan.make(found(OPEN, STREAMING, TITLE, TEXT, REASONING, NOT_ENTERED, EFFECT))

    assert made.found == {"attempts": 2, "tools": 2, "parts": 2}
