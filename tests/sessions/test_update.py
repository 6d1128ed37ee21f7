"""Changing a session: what is already so makes no event."""

from typing import Any

import pytest

from schema.problems import InvalidValue
from sessions_app import identity, sessions
from sessions_app.log import SessionGone
from sessions_app.models import Agent, SessionMessage
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def update(session_id: str, **arguments: Any) -> None:
    sessions.update(session_id=session_id, now=world.after(60), **arguments)


def test_a_change_is_one_event_that_holds_only_what_changed() -> None:
    session_id, neighbour = world.session(title="Old"), world.session()
    before = world.everything_of(neighbour)

    update(session_id, title="New", archived=True, pinned=False)

    assert world.event_types(session_id)[1:] == ["session.updated"]
    stored = world.row(session_id)
    assert (stored.title, stored.archived, stored.pinned, stored.head_seq) == ("New", True, False, 2)
    assert world.everything_of(neighbour) == before


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"title": "Same"},
        {"archived": False, "pinned": False},
        {"recovery_policy": ""},
        {"agent": "default"},
        {"model": "demo:scripted"},
    ],
)
def test_what_is_already_so_makes_no_event(arguments: dict[str, Any]) -> None:
    session_id = world.session(title="Same")
    before = world.everything_of(session_id)

    update(session_id, **arguments)

    assert world.everything_of(session_id) == before


def test_a_recovery_policy_is_set_and_taken_back() -> None:
    session_id = world.session()

    update(session_id, recovery_policy="off")
    assert world.row(session_id).recovery_policy == "off"

    update(session_id, recovery_policy="")
    assert world.row(session_id).recovery_policy == ""


def test_a_switch_of_agent_or_model_is_an_event_and_a_line_of_the_transcript() -> None:
    Agent.objects.create(name="writer")
    session_id = world.session()

    update(session_id, agent="writer", model="openai:gpt")
    update(session_id, agent="writer", model="openai:gpt")

    assert world.event_types(session_id)[1:] == ["agent.switched", "model.switched"]
    lines = (
        SessionMessage.objects.filter(session_id=session_id)
        .order_by("seq")
        .values_list("type", "agent", "model")
    )
    assert list(lines) == [("agent-switched", "writer", ""), ("model-switched", "", "openai:gpt")]
    assert (world.row(session_id).agent, world.row(session_id).model) == ("writer", "openai:gpt")


@pytest.mark.parametrize("arguments", [{"agent": "nobody"}, {"model": "nobody:model"}])
def test_a_switch_to_what_is_not_there_changes_nothing(arguments: dict[str, str]) -> None:
    session_id = world.session()
    before = world.everything_of(session_id)

    with pytest.raises(InvalidValue):
        update(session_id, title="never", **arguments)

    assert world.everything_of(session_id) == before


def test_a_session_that_is_gone_is_not_changed() -> None:
    with pytest.raises(SessionGone):
        update(identity.new_session_id(), title="New")
