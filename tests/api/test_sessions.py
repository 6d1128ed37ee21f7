"""POST, GET /sessions and GET, PATCH, DELETE /sessions/{id}."""

from datetime import datetime

import pytest

from sessions_app import sessions
from sessions_app.models import Agent, Session
from tests.api.callers import Caller, pages_of, refused
from tests.support import world
from tests.support.racing import together

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

OWN_ID = "ses_chosen-by-a-client"


def test_a_new_session_is_answered_with_its_shape(ann: Caller) -> None:
    response = ann.post("/sessions", {"title": "Logs", "recovery_policy": "ask"})

    made = response.json()
    assert response.status_code == 201
    assert made["title"] == "Logs"
    assert made["agent"] == "default"
    assert made["model"] == "demo:scripted"
    assert made["recovery_policy"] == "ask"
    assert (made["archived"], made["pinned"], made["head_seq"]) == (False, False, 1)
    assert made["status"]["state"] == "idle"
    assert made["created_at"].endswith("Z")
    assert datetime.fromisoformat(made["active_at"]).utcoffset() is not None
    assert ann.get(f"/sessions/{made['id']}").json() == made


def test_no_body_at_all_makes_a_session(ann: Caller) -> None:
    assert ann.send("POST", "/sessions", b"", "").status_code == 201


def test_the_same_id_again_gives_the_session_unchanged(ann: Caller) -> None:
    made = ann.post("/sessions", {"id": OWN_ID, "title": "First"})

    again = ann.post("/sessions", {"id": OWN_ID, "title": "Second", "model": "nobody:knows"})

    assert (made.status_code, again.status_code) == (201, 200)
    assert again.json() == made.json()


def test_an_id_that_somebody_else_has_is_unavailable(ann: Caller, bob: Caller) -> None:
    ann.post("/sessions", {"id": OWN_ID})

    refused(bob.post("/sessions", {"id": OWN_ID}), 409, "session_id_unavailable")


def test_the_id_of_a_deleted_session_is_unavailable_also_to_its_owner(ann: Caller, bob: Caller) -> None:
    ann.post("/sessions", {"id": OWN_ID})
    ann.delete(f"/sessions/{OWN_ID}")

    refused(ann.post("/sessions", {"id": OWN_ID}), 409, "session_id_unavailable")
    refused(bob.post("/sessions", {"id": OWN_ID}), 409, "session_id_unavailable")


@pytest.mark.parametrize(
    "chosen", ["x", "", "msg_12345678", "ses_short", "ses_" + "x" * 65, "ses_under_score"]
)
def test_an_id_that_no_client_may_choose_is_refused(ann: Caller, chosen: str) -> None:
    refused(ann.post("/sessions", {"id": chosen}), 400, "invalid_id")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"agent": "nobody"}, "agent"),
        ({"model": "nonsense"}, "model"),
        ({"model": "x" * 300}, "model"),
        ({"title": "x" * 201}, "title"),
        ({"recovery_policy": "maybe"}, "recovery_policy"),
        ({"archived": True}, "archived"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(ann: Caller, body: dict[str, object], field: str) -> None:
    problem = refused(ann.post("/sessions", body), 400, "invalid")

    assert set(problem["errors"]) == {field}
    assert Session.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_one_id_sent_many_times_at_once_makes_one_session(ann: Caller) -> None:
    def send() -> tuple[int, str]:
        response = Caller(headers=ann.headers).post("/sessions", {"id": OWN_ID})
        return response.status_code, response.json()["id"]

    answers = together([send] * 8)

    assert sorted(answers) == [(200, OWN_ID)] * 7 + [(201, OWN_ID)]


def test_the_list_shows_own_sessions_newest_activity_first(ann: Caller, bob: Caller) -> None:
    mine = [world.session(user_id=ann.user_id) for _ in range(3)]
    world.session(user_id=bob.user_id)
    world.prompt(mine[0], now=world.after(60))

    found = ann.get("/sessions").json()

    assert found["next"] is None
    assert found["results"][0]["id"] == mine[0]
    assert {row["id"] for row in found["results"]} == set(mine)


def test_pages_give_every_session_once_while_new_ones_arrive(ann: Caller) -> None:
    old = [sessions.create(user_id=ann.user_id, now=world.after(n // 3)).session.pk for n in range(11)]

    first = ann.get("/sessions?limit=4").json()
    newcomer = sessions.create(user_id=ann.user_id, now=world.after(100)).session.pk
    second = ann.get(f"/sessions?limit=4&cursor={first['next']}").json()
    third = ann.get(f"/sessions?limit=4&cursor={second['next']}").json()

    given = [row["id"] for page in (first, second, third) for row in page["results"]]
    assert sorted(given) == sorted(old)
    assert third["next"] is None
    assert newcomer not in given
    assert sum(map(len, pages_of(ann, "/sessions", limit=4)), 0) == 12


def test_a_cursor_of_another_list_is_refused(ann: Caller, session_id: str) -> None:
    for _ in range(2):
        world.prompt(session_id)
        world.session(user_id=ann.user_id)
    cursor = ann.get(f"/sessions/{session_id}/prompts?limit=1").json()["next"]

    refused(ann.get(f"/sessions?cursor={cursor}"), 400, "invalid_cursor")


def test_archived_sessions_have_a_list_of_their_own(ann: Caller, session_id: str) -> None:
    kept = world.session(user_id=ann.user_id)
    ann.patch(f"/sessions/{session_id}", {"archived": True})

    assert [row["id"] for row in ann.get("/sessions").json()["results"]] == [kept]
    assert [row["id"] for row in ann.get("/sessions?archived=true").json()["results"]] == [session_id]


def test_titles_are_searched_literally(ann: Caller) -> None:
    ann.post("/sessions", {"title": "100% of the logs"})
    ann.post("/sessions", {"title": "About logs"})

    assert len(ann.get("/sessions?q=LOGS").json()["results"]) == 2
    assert len(ann.get("/sessions?q=%25").json()["results"]) == 1
    assert ann.get("/sessions?q=nothing").json() == {"results": [], "next": None}


def test_what_needs_a_decision_can_be_listed_alone(ann: Caller, session_id: str) -> None:
    parked = world.session(user_id=ann.user_id)
    world.change(parked, parked=True)

    assert [row["id"] for row in ann.get("/sessions?needs_decision=true").json()["results"]] == [parked]
    assert [row["id"] for row in ann.get("/sessions?needs_decision=false").json()["results"]] == [session_id]
    assert ann.get(f"/sessions/{parked}").json()["status"]["state"] == "needs_decision"


def test_a_change_changes_what_is_given_alone(ann: Caller, session_id: str) -> None:
    before = ann.get(f"/sessions/{session_id}").json()

    changed = ann.patch(f"/sessions/{session_id}", {"title": "New", "pinned": True})

    assert changed.status_code == 200
    assert changed.json() == before | {
        "title": "New",
        "pinned": True,
        "head_seq": 2,
        "status": before["status"] | {"head_seq": 2},
    }
    assert ann.get(f"/sessions/{session_id}").json() == changed.json()


def test_the_same_change_again_makes_no_event(ann: Caller, session_id: str) -> None:
    first = ann.patch(f"/sessions/{session_id}", {"title": "New", "archived": True}).json()
    again = ann.patch(f"/sessions/{session_id}", {"title": "New", "archived": True}).json()

    assert again["head_seq"] == first["head_seq"] == 2


def test_a_recovery_policy_can_be_given_up(ann: Caller, session_id: str) -> None:
    ann.patch(f"/sessions/{session_id}", {"recovery_policy": "off"})

    assert ann.patch(f"/sessions/{session_id}", {"recovery_policy": None}).json()["recovery_policy"] is None


def test_agent_and_model_are_switched(ann: Caller, session_id: str) -> None:
    Agent.objects.create(name="pirate", system="Talk like one.")

    changed = ann.patch(f"/sessions/{session_id}", {"agent": "pirate", "model": "openai:gpt-4.1"}).json()

    assert (changed["agent"], changed["model"]) == ("pirate", "openai:gpt-4.1")
    assert [row["type"] for row in ann.get(f"/sessions/{session_id}/messages").json()["results"]] == [
        "agent-switched",
        "model-switched",
    ]


@pytest.mark.parametrize(
    "body", [{"title": None}, {"archived": "yes"}, {"id": "x"}, {"user": 1}, {"agent": "nobody"}]
)
def test_a_change_that_cannot_be_made_changes_nothing(
    ann: Caller, session_id: str, body: dict[str, object]
) -> None:
    before = world.everything_of(session_id)

    refused(ann.patch(f"/sessions/{session_id}", body), 400, "invalid")

    assert world.everything_of(session_id) == before


def test_a_deleted_session_is_gone_and_others_stay(ann: Caller, session_id: str) -> None:
    kept = world.session(user_id=ann.user_id)
    world.prompt(session_id)
    before = world.everything_of(kept)

    response = ann.delete(f"/sessions/{session_id}")

    assert (response.status_code, response.content) == (204, b"")
    refused(ann.get(f"/sessions/{session_id}"), 404, "session_not_found")
    refused(ann.delete(f"/sessions/{session_id}"), 404, "session_not_found")
    refused(ann.post(f"/sessions/{session_id}/prompts", {"text": "x"}), 404, "session_not_found")
    assert world.everything_of(kept) == before
