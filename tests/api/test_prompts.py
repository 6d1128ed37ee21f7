"""POST, GET /sessions/{id}/prompts and PATCH, DELETE /sessions/{id}/prompts/{msg}."""

from typing import Any

import pytest

from schema.limits import MAX_PROMPT_CHARACTERS
from sessions_app import log, sessions
from sessions_app.models import SessionInput
from tests.api.callers import UNKNOWN_PROMPT, Caller, pages_of, refused, statements
from tests.support import world
from tests.support.racing import together

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

MESSAGE = "msg_chosen-by-a-client"


@pytest.fixture
def prompts(session_id: str) -> str:
    return f"/sessions/{session_id}/prompts"


def test_a_prompt_is_admitted_and_answered_with_its_shape(ann: Caller, session_id: str, prompts: str) -> None:
    response = ann.post(prompts, {"id": MESSAGE, "text": " Hello \r\n😀 ", "delivery": "queue"})

    admitted = response.json()
    assert response.status_code == 201
    assert admitted.pop("created_at").endswith("Z")
    assert admitted == {
        "id": MESSAGE,
        "session": session_id,
        "text": " Hello \r\n😀 ",
        "delivery": "queue",
        "origin": "user",
        "state": "pending",
        "wake": True,
        "admitted_seq": 2,
        "promoted_seq": None,
    }
    assert world.wakes() == [session_id]


def test_what_is_left_out_or_null_has_its_default(ann: Caller, prompts: str) -> None:
    bare = ann.post(prompts, {"text": "x"}).json()
    nulls = ann.post(prompts, {"text": "x", "id": None, "delivery": None, "wake": None}).json()

    assert [(each["delivery"], each["wake"]) for each in (bare, nulls)] == [("steer", True)] * 2
    assert bare["id"] != nulls["id"]


def test_a_prompt_that_wants_no_wake_makes_none(ann: Caller, prompts: str) -> None:
    assert ann.post(prompts, {"text": "x", "wake": False}).json()["wake"] is False
    assert world.wakes() == []


def test_the_same_prompt_again_is_the_same_record(ann: Caller, session_id: str, prompts: str) -> None:
    body = {"id": MESSAGE, "text": "Hello"}
    first = ann.post(prompts, body)
    world.promote(world.take(session_id))

    again = ann.post(prompts, body)

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json() | {"state": "promoted", "promoted_seq": again.json()["promoted_seq"]}
    assert SessionInput.objects.count() == 1


@pytest.mark.parametrize("change", [{"text": "Other"}, {"delivery": "queue"}])
def test_another_prompt_under_a_known_id_is_a_conflict(
    ann: Caller, session_id: str, prompts: str, change: dict[str, Any]
) -> None:
    ann.post(prompts, {"id": MESSAGE, "text": "Hello"})
    before = world.everything_of(session_id)

    refused(ann.post(prompts, {"id": MESSAGE, "text": "Hello"} | change), 409, "prompt_conflict")

    assert world.everything_of(session_id) == before


def test_an_id_of_another_session_is_a_conflict_that_does_not_say_whose(
    ann: Caller, bob: Caller, prompts: str
) -> None:
    ann.post(prompts, {"id": MESSAGE, "text": "Hello"})
    theirs = world.session(user_id=bob.user_id)

    problem = refused(
        bob.post(f"/sessions/{theirs}/prompts", {"id": MESSAGE, "text": "Hello"}), 409, "prompt_conflict"
    )

    assert "ann" not in str(problem)
    assert "ses_" not in str(problem)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid"),
        ({"text": None}, 400, "invalid"),
        ({"text": 5}, 400, "invalid"),
        ({"text": "x", "delivery": "later"}, 400, "invalid"),
        ({"text": "x", "wake": "yes"}, 400, "invalid"),
        ({"text": "x", "origin": "recovery"}, 400, "invalid"),
        ({"text": "x", "id": "msg_rec-12345678"}, 400, "invalid_id"),
        ({"text": "x", "id": "ses_12345678"}, 400, "invalid_id"),
        ({"text": "x", "id": ""}, 400, "invalid_id"),
        ({"text": ""}, 422, "empty_prompt"),
        ({"text": " \n\t\0"}, 422, "empty_prompt"),
        ({"text": "x" * (MAX_PROMPT_CHARACTERS + 1)}, 413, "prompt_too_large"),
    ],
)
def test_a_prompt_that_cannot_be_admitted_is_refused(
    ann: Caller, session_id: str, prompts: str, body: dict[str, Any], status: int, code: str
) -> None:
    before = world.everything_of(session_id)

    refused(ann.post(prompts, body), status, code)

    assert world.everything_of(session_id) == before


def test_the_longest_prompt_is_admitted_however_it_is_written(ann: Caller, prompts: str) -> None:
    response = ann.post(prompts, {"text": "😀" * MAX_PROMPT_CHARACTERS})

    assert response.status_code == 201
    assert response.json()["text"] == "😀" * MAX_PROMPT_CHARACTERS


@pytest.mark.django_db(transaction=True)
def test_one_prompt_sent_twenty_times_at_once_is_one_record(
    ann: Caller, session_id: str, prompts: str
) -> None:
    def send() -> tuple[int, Any]:
        response = Caller(headers=ann.headers).post(prompts, {"id": MESSAGE, "text": "Hello"})
        return response.status_code, response.json()["admitted_seq"]

    answers = together([send] * 20)

    assert sorted(answers) == [(200, 2)] * 19 + [(201, 2)]
    assert world.event_types(session_id).count("prompt.admitted") == 1


@pytest.mark.django_db(transaction=True)
def test_of_different_prompts_sent_under_one_id_at_once_one_is_admitted(
    ann: Caller, bob: Caller, prompts: str
) -> None:
    theirs = f"/sessions/{world.session(user_id=bob.user_id)}/prompts"

    def send(caller: Caller, path: str, text: str) -> int:
        body = {"id": MESSAGE, "text": text}
        return int(Caller(headers=caller.headers).post(path, body).status_code)

    calls = [lambda n=n: send(ann, prompts, f"Text {n}") for n in range(5)]
    calls += [lambda n=n: send(bob, theirs, f"Text {n}") for n in range(5)]
    statuses = together(calls)

    assert sorted(statuses) == [201] + [409] * 9
    assert SessionInput.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_session_deleted_before_the_admission_is_not_found(
    ann: Caller, session_id: str, prompts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(**_: Any) -> None:
        raise log.SessionGone(session_id=session_id)

    monkeypatch.setattr(sessions, "prompt", gone)

    refused(ann.post(prompts, {"text": "x"}), 404, "session_not_found")


def test_an_admission_asks_the_database_a_fixed_number_of_times(ann: Caller, prompts: str) -> None:
    """Who asks, whose session, and the one transaction of the admission."""
    first = statements(lambda: ann.post(prompts, {"text": "x"}))
    for _ in range(30):
        ann.post(prompts, {"text": "x"})
    later = statements(lambda: ann.post(prompts, {"text": "x"}))

    assert first <= 10
    assert later == first


def test_the_list_is_in_admission_order_and_by_state(ann: Caller, session_id: str, prompts: str) -> None:
    promoted = world.prompt(session_id)
    world.promote(world.take(session_id))
    pending = [world.prompt(session_id, delivery="queue") for _ in range(2)]
    withdrawn = world.prompt(session_id)
    ann.delete(f"{prompts}/{withdrawn}")

    def ids(query: str) -> list[str]:
        return [row["id"] for row in ann.get(f"{prompts}{query}").json()["results"]]

    assert ids("") == ids("?state=pending") == pending
    assert ids("?state=promoted") == [promoted]
    assert ids("?state=withdrawn") == [withdrawn]
    assert ids("?state=all") == [promoted, *pending, withdrawn]
    refused(ann.get(f"{prompts}?state=lost"), 400, "invalid")


def test_pages_of_prompts_stay_while_new_ones_arrive(ann: Caller, session_id: str, prompts: str) -> None:
    old = [world.prompt(session_id) for _ in range(5)]
    first = ann.get(f"{prompts}?limit=3").json()
    new = world.prompt(session_id)

    second = ann.get(f"{prompts}?limit=3&cursor={first['next']}").json()

    assert [row["id"] for row in first["results"] + second["results"]] == [*old, new]
    assert second["next"] is None
    assert [len(page) for page in pages_of(ann, prompts, limit=2)] == [2, 2, 2]


def test_a_pending_prompt_is_switched_and_withdrawn(ann: Caller, session_id: str, prompts: str) -> None:
    message = world.prompt(session_id)

    switched = ann.patch(f"{prompts}/{message}", {"delivery": "queue"})
    withdrawn = [ann.delete(f"{prompts}/{message}").status_code for _ in range(2)]

    assert (switched.status_code, switched.json()["delivery"]) == (200, "queue")
    assert withdrawn == [204, 409]
    assert world.event_types(session_id)[-2:] == ["prompt.delivery_changed", "prompt.withdrawn"]
    refused(ann.patch(f"{prompts}/{message}", {"delivery": "steer"}), 409, "withdrawn")


def test_a_promoted_prompt_stays(ann: Caller, session_id: str, prompts: str) -> None:
    message = world.prompt(session_id)
    world.promote(world.take(session_id))

    refused(ann.patch(f"{prompts}/{message}", {"delivery": "queue"}), 409, "already_promoted")
    refused(ann.delete(f"{prompts}/{message}"), 409, "already_promoted")


def test_a_prompt_of_another_session_is_not_found_before_anything_else(ann: Caller, prompts: str) -> None:
    elsewhere = world.prompt(world.session(user_id=ann.user_id))

    for message in (elsewhere, UNKNOWN_PROMPT):
        refused(ann.patch(f"{prompts}/{message}", {"nonsense": 1}), 404, "prompt_not_found")
        refused(ann.call("PUT", f"{prompts}/{message}"), 404, "prompt_not_found")
        refused(ann.delete(f"{prompts}/{message}"), 404, "prompt_not_found")


@pytest.mark.parametrize("body", [{}, {"delivery": "later"}, {"delivery": "queue", "text": "x"}])
def test_a_switch_that_cannot_be_made_is_refused(
    ann: Caller, session_id: str, prompts: str, body: dict[str, Any]
) -> None:
    refused(ann.patch(f"{prompts}/{world.prompt(session_id)}", body), 400, "invalid")
