"""GET /sessions/{id}/messages and /events."""

from typing import Any

import pytest

from tests.api.callers import Caller, pages_of, refused, statements
from tests.support import world
from tests.web.conversations import Conversation

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def conversation(session_id: str) -> Conversation:
    return Conversation(session_id=session_id)


def answered(conversation: Conversation, prompt: str, answer: str) -> None:
    conversation.prompt(prompt)
    conversation.promote()
    message = conversation.begin_answer()
    conversation.end_text(message, conversation.begin_text(message), answer)
    conversation.end_answer(message)


def test_messages_are_given_in_order_with_their_parts(
    ann: Caller, session_id: str, conversation: Conversation
) -> None:
    answered(conversation, "Hello", "Good day")

    user, assistant = ann.get(f"/sessions/{session_id}/messages").json()["results"]

    assert (user["type"], user["text"], user["parts"], user["state"]) == ("user", "Hello", [], "completed")
    assert (assistant["type"], assistant["state"], assistant["text"]) == ("assistant", "completed", None)
    assert [(part["kind"], part["state"], part["text"]) for part in assistant["parts"]] == [
        ("text", "completed", "Good day")
    ]
    assert user["seq"] < assistant["seq"]


def test_an_open_part_shows_its_text_so_far(ann: Caller, session_id: str, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    conversation.begin_text(message, "So f")

    (found,) = ann.get(f"/sessions/{session_id}/messages").json()["results"]

    assert (found["state"], found["completed_at"]) == ("running", None)
    assert [(part["state"], part["text"]) for part in found["parts"]] == [("open", "So f")]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_messages_give_each_once(
    ann: Caller, session_id: str, conversation: Conversation, order: str
) -> None:
    for number in range(3):
        answered(conversation, f"Prompt {number}", "Answer")

    path = f"/sessions/{session_id}/messages?order={order}"
    seqs = [row["seq"] for page in pages_of(ann, path, limit=4) for row in page]

    assert len(seqs) == 6
    assert seqs == sorted(seqs, reverse=order == "desc")


def test_a_cursor_of_the_other_direction_is_refused(
    ann: Caller, session_id: str, conversation: Conversation
) -> None:
    answered(conversation, "Hello", "Good day")
    cursor = ann.get(f"/sessions/{session_id}/messages?limit=1").json()["next"]

    refused(ann.get(f"/sessions/{session_id}/messages?order=desc&cursor={cursor}"), 400, "invalid_cursor")


def test_messages_cost_as_many_statements_however_many_there_are(
    ann: Caller, session_id: str, conversation: Conversation
) -> None:
    def read() -> None:
        ann.get(f"/sessions/{session_id}/messages")

    answered(conversation, "Hello", "Good day")
    few = statements(read)
    for _ in range(5):
        answered(conversation, "Hello", "Good day")

    assert statements(read) == few


def test_sessions_cost_as_many_statements_however_many_there_are(ann: Caller) -> None:
    def read() -> None:
        assert ann.get("/sessions").status_code == 200

    worker = world.worker()
    for _ in range(2):
        world.take(prompted(ann), worker.pk)
    few = statements(read)
    for _ in range(6):
        world.take(prompted(ann), worker.pk)
        prompted(ann)

    assert statements(read) == few


def prompted(ann: Caller) -> str:
    session_id = world.session(user_id=ann.user_id)
    world.prompt(session_id)
    return session_id


def test_events_are_given_without_a_gap_from_any_position(ann: Caller, session_id: str) -> None:
    for _ in range(4):
        world.prompt(session_id)

    everything = ann.get(f"/sessions/{session_id}/events").json()
    rest = ann.get(f"/sessions/{session_id}/events?after=2&limit=2").json()

    assert [event["seq"] for event in everything["results"]] == [1, 2, 3, 4, 5]
    assert (everything["next_after"], everything["head_seq"]) == (5, 5)
    assert rest["results"] == everything["results"][2:4]
    assert (rest["next_after"], rest["head_seq"]) == (4, 5)
    assert set(everything["results"][0]) == {"seq", "type", "version", "time", "data"}
    assert everything["results"][1]["type"] == "prompt.admitted"


def test_after_the_last_event_the_position_stays(ann: Caller, session_id: str) -> None:
    assert ann.get(f"/sessions/{session_id}/events?after=1").json() == {
        "results": [],
        "next_after": 1,
        "head_seq": 1,
    }
    assert ann.get(f"/sessions/{session_id}/events?after=99").json()["next_after"] == 99


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", f"after={2**63}", "limit=501", "limit=0", "cursor=x"]
)
def test_a_position_that_is_none_is_refused(ann: Caller, session_id: str, query: str) -> None:
    refused(ann.get(f"/sessions/{session_id}/events?{query}"), 400, "invalid")


def test_the_last_possible_position_is_no_error(ann: Caller, session_id: str) -> None:
    found: Any = ann.get(f"/sessions/{session_id}/events?after={2**63 - 1}")

    assert found.status_code == 200
