"""The state of a session: the first that holds, in the order of the contract."""

from dataclasses import replace
from itertools import product

import pytest

from schema.status import SETTLED_STATES, Facts, State, derive

NOTHING = Facts(
    owned=False,
    owner_alive=False,
    retry=False,
    waiting=False,
    parked=False,
    recovering=False,
    undecided=False,
    due=False,
)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "idle"),
        ({"due": True}, "queued"),
        ({"undecided": True}, "needs_decision"),
        ({"parked": True}, "needs_decision"),
        ({"parked": True, "due": True}, "needs_decision"),
        ({"undecided": True, "due": True}, "needs_decision"),
        ({"waiting": True}, "waiting"),
        ({"waiting": True, "parked": True, "undecided": True, "due": True}, "waiting"),
        ({"owned": True, "owner_alive": True}, "busy"),
        ({"owned": True, "owner_alive": True, "waiting": True, "parked": True, "undecided": True, "due": True}, "busy"),
        ({"retry": True}, "retrying"),
        ({"retry": True, "due": True}, "retrying"),
        ({"retry": True, "owned": True, "owner_alive": True}, "retrying"),
        ({"owned": True}, "orphaned"),
        ({"owned": True, "retry": True, "waiting": True, "undecided": True, "due": True}, "orphaned"),
        ({"owned": True, "parked": True}, "needs_decision"),
        ({"owned": True, "parked": True, "retry": True, "due": True}, "needs_decision"),
        ({"owned": True, "parked": True, "waiting": True}, "waiting"),
        ({"owned": True, "parked": True, "recovering": True, "waiting": True}, "orphaned"),
    ],
)  # fmt: skip
def test_the_first_state_that_holds(facts: dict[str, bool], state: State) -> None:
    assert derive(replace(NOTHING, **facts)) == state


def test_nothing_says_it_runs_without_a_living_owner() -> None:
    for values in product((False, True), repeat=8):
        facts = Facts(**dict(zip(NOTHING.__dataclass_fields__, values, strict=True)))
        if derive(facts) == "busy":
            assert facts.owned
            assert facts.owner_alive
        if facts.owned and not facts.owner_alive:
            assert derive(facts) in ("orphaned", "waiting", "needs_decision")
            assert facts.parked or derive(facts) == "orphaned"


def test_waiting_for_a_session_ends_where_nothing_runs_and_nothing_is_about_to() -> None:
    assert {"orphaned", "waiting", "needs_decision", "idle"} == SETTLED_STATES
