"""POST .../decide: once, by whom it belongs to, with the same answer however many ask."""

from typing import Any

import pytest

from sessions_app.models import MessagePart, SessionInput
from tests.api.callers import UNKNOWN_ATTEMPT, Caller, refused
from tests.recovery import scenes
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

UNKNOWN_CALL = "prt_0000000000000000"


def decide(caller: Caller, path: str, action: str, **more: Any) -> Any:
    return caller.post(f"{path}/decide", {"action": action, **more})


def test_an_abandoned_attempt_stays_unknown_and_nothing_is_owed(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)

    answered = decide(ann, f"/attempts/{attempt}", "abandon", reason="Seen on the bill")

    assert answered.status_code == 200, answered.content
    told = answered.json()
    assert (told["id"], told["state"]) == (attempt, "unknown")
    assert [fact["fact"] for fact in told["facts"]][-1] == "decided"
    assert told["decision"].pop("at").endswith("Z")
    assert told["decision"] == {
        "action": "abandon", "by": "ann", "policy": False, "reason": "Seen on the bill",
    }  # fmt: skip
    assert world.row(session_id).owed_at is None
    assert world.wakes() == []
    assert ann.get(f"/sessions/{session_id}/status").json()["state"] == "idle"
    assert ann.get("/attempts?needs_decision=true").json()["results"] == []


def test_a_retry_admits_one_input_of_its_own_and_wakes(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)

    assert decide(ann, f"/attempts/{attempt}", "retry").status_code == 200

    admitted = SessionInput.objects.get(session_id=session_id, origin="retry")
    assert admitted.pk == f"msg_rec-{attempt.removeprefix('att_')}"
    assert admitted.promoted_seq is None
    assert world.wakes() == [session_id]


def test_a_second_decision_is_refused_and_told_the_first(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    first = decide(ann, f"/attempts/{attempt}", "abandon", reason="Enough").json()["decision"]
    before = world.everything_of(session_id)

    for action in ("abandon", "retry"):
        problem = refused(decide(ann, f"/attempts/{attempt}", action), 409, "already_decided")
        assert problem["decision"] == first

    assert world.everything_of(session_id) == before


def test_a_retry_after_a_newer_turn_is_superseded_and_an_abandon_is_not(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    scenes.say(session_id, "Something else")

    refused(decide(ann, f"/attempts/{attempt}", "retry"), 409, "superseded")
    assert decide(ann, f"/attempts/{attempt}", "abandon").status_code == 200


def test_what_is_known_is_not_decided(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    scenes.answer(session_id)
    (attempt,) = ann.get(f"/attempts?session={session_id}").json()["results"]
    call = scenes.finished_call(session_id, "42")

    refused(decide(ann, f"/attempts/{attempt['id']}", "abandon"), 409, "not_unknown")
    refused(decide(ann, f"/tool-calls/{call}", "mark_done"), 409, "not_unknown")
    refused(decide(ann, f"/tool-calls/{call}", "approve"), 409, "not_waiting")


@pytest.mark.parametrize(("action", "became"), [("approve", "approved"), ("deny", "denied")])
def test_a_waiting_call_is_answered_and_a_run_is_owed(
    ann: Caller, session_id: str, action: str, became: str
) -> None:
    scenes.say(session_id)
    call = scenes.waiting_call(session_id)
    assert ann.get(f"/sessions/{session_id}/status").json()["waiting"] == [call]

    told = decide(ann, f"/tool-calls/{call}", action, reason="So").json()

    assert (told["id"], told["session"], told["approval"]) == (call, session_id, became)
    assert (told["decision"]["by"], told["decision"]["reason"]) == ("ann", "So")
    assert world.row(session_id).owed_at is not None
    assert world.wakes() == [session_id]
    refused(decide(ann, f"/tool-calls/{call}", "approve"), 409, "already_decided")


def test_a_late_answer_to_a_stopped_step_is_superseded(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    call = scenes.waiting_call(session_id)
    assert ann.post(f"/sessions/{session_id}/interrupt", {}).json()["interrupted"]

    refused(decide(ann, f"/tool-calls/{call}", "approve"), 409, "superseded")


def test_a_waiting_call_is_not_marked_and_an_unknown_one_not_approved(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    waiting = scenes.waiting_call(session_id)
    other = world.session(user_id=ann.user_id)
    scenes.say(other)
    unknown = scenes.unknown_call(other)

    refused(decide(ann, f"/tool-calls/{waiting}", "mark_done"), 409, "not_unknown")
    refused(decide(ann, f"/tool-calls/{unknown}", "approve"), 409, "not_waiting")


def test_a_marked_call_keeps_its_state_and_the_last_mark_owes_a_run(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)

    told = decide(ann, f"/tool-calls/{call}", "mark_done", result={"id": [1, None, "x"]}).json()

    assert (told["state"], told["unknown"]) == ("error", True)
    assert told["decision"]["result"] == {"id": [1, None, "x"]}
    assert world.row(session_id).owed_at is not None
    assert world.wakes() == [session_id]
    problem = refused(decide(ann, f"/tool-calls/{call}", "mark_not_done"), 409, "already_decided")
    assert problem["decision"]["action"] == "mark_done"


def test_a_mark_after_a_newer_turn_owes_nothing(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)
    scenes.say(session_id, "Something else")
    scenes.answer(session_id)

    assert decide(ann, f"/tool-calls/{call}", "mark_not_done").status_code == 200

    assert world.row(session_id).owed_at is None


def test_the_last_decision_lets_go_what_waited_behind_it(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    world.prompt(session_id, "Next", delivery="queue")
    world.forget_wakes(session_id)
    world.change(session_id, hold_seq=world.row(session_id).head_seq, hold_reason="undecided", parked=True)

    assert decide(ann, f"/attempts/{attempt}", "abandon").status_code == 200

    row = world.row(session_id)
    assert (row.hold_seq, row.hold_reason, row.parked, row.recovery_count) == (None, "", False, 0)
    assert world.wakes() == [session_id]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "approve"},
        {"action": "retry", "result": 1},
        {"action": "retry", "reason": "x" * 2001},
        {"action": None},
    ],
)
def test_a_bad_decision_on_an_attempt_is_refused(ann: Caller, session_id: str, body: Any) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    before = world.everything_of(session_id)

    refused(ann.post(f"/attempts/{attempt}/decide", body), 400, "invalid")

    assert world.everything_of(session_id) == before


@pytest.mark.parametrize(
    "data",
    [
        b'{"action": "mark_not_done", "result": 1}',
        b'{"action": "approve", "result": "x"}',
        b'{"action": "mark_done", "result": 1e999}',
        b'{"action": "mark_done", "result": "%s"}' % (b"x" * 32_001),
        b'{"action": "retry"}',
    ],
)
def test_a_bad_decision_on_a_call_is_refused(ann: Caller, session_id: str, data: bytes) -> None:
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)
    before = world.everything_of(session_id)

    refused(ann.send("POST", f"/tool-calls/{call}/decide", data), 400, "invalid")

    assert world.everything_of(session_id) == before


def test_what_cannot_be_stored_is_taken_out_of_reason_and_result(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)
    body = (
        rb'{"action": "mark_done", "reason": "a\u0000b", "result": {"\ud800k": ["\u0000", "\ud83d\ude00"]}}'
    )

    told = ann.send("POST", f"/tool-calls/{call}/decide", body).json()

    assert told["decision"]["reason"] == "ab"
    assert told["decision"]["result"] == {"k": ["", "\U0001f600"]}


def test_others_are_told_that_it_does_not_exist_before_anything_else(
    ann: Caller, bob: Caller, session_id: str
) -> None:
    scenes.say(session_id)
    attempt, call = scenes.unknown_attempt(session_id), scenes.unknown_call(session_id)
    before = world.everything_of(session_id)

    for path, code in (
        (f"/attempts/{attempt}/decide", "attempt_not_found"),
        (f"/attempts/{UNKNOWN_ATTEMPT}/decide", "attempt_not_found"),
        (f"/tool-calls/{call}/decide", "tool_call_not_found"),
        (f"/tool-calls/{UNKNOWN_CALL}/decide", "tool_call_not_found"),
    ):
        refused(bob.post(path, {"action": "abandon"}), 404, code)
        refused(bob.send("POST", path, b"{{{", "text/plain"), 404, code)
        refused(bob.get(path), 404, code)
        refused(Caller().post(path, {"action": "abandon"}), 401, "not_authenticated")
    refused(ann.get(f"/attempts/{attempt}/decide"), 405, "method_not_allowed")
    assert world.everything_of(session_id) == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["attempt", "call", "approval"])
def test_of_many_who_decide_at_once_one_wins_and_all_others_are_told(
    ann: Caller, session_id: str, kind: str
) -> None:
    scenes.say(session_id)
    path, actions = {
        "attempt": lambda: (f"/attempts/{scenes.unknown_attempt(session_id)}", ("abandon", "retry")),
        "call": lambda: (f"/tool-calls/{scenes.unknown_call(session_id)}", ("mark_done", "mark_not_done")),
        "approval": lambda: (f"/tool-calls/{scenes.waiting_call(session_id)}", ("approve", "deny")),
    }[kind]()

    def act(number: int) -> Any:
        caller = Caller(headers=ann.headers)
        return lambda: decide(caller, path, actions[number % 2])

    answers = racing.together([act(number) for number in range(4)])

    (winner,) = [answer.json()["decision"] for answer in answers if answer.status_code == 200]
    losers = [answer for answer in answers if answer.status_code != 200]
    assert len(losers) == 3
    for loser in losers:
        assert refused(loser, 409, "already_decided")["decision"] == winner
    decided = [each for each in world.event_types(session_id) if each.endswith("decided")]
    assert len(decided) == 1
    retries = SessionInput.objects.filter(session_id=session_id, origin="retry").count()
    assert retries == (1 if winner["action"] == "retry" else 0)


def test_tool_calls_are_listed_and_filtered(ann: Caller, bob: Caller, session_id: str) -> None:
    scenes.say(session_id)
    done = scenes.finished_call(session_id, "42")
    unknown = scenes.unknown_call(session_id, now=world.after(1))
    waiting = scenes.waiting_call(session_id, now=world.after(2))
    theirs = world.session(user_id=bob.user_id)

    def ids(query: str) -> list[str]:
        return [row["id"] for row in ann.get(f"/tool-calls{query}").json()["results"]]

    assert ids("") == [waiting, unknown, done]
    assert ids("?needs_decision=true") == [waiting, unknown]
    assert ids("?needs_decision=false") == [done]
    assert ids("?state=pending") == [waiting]
    assert ids(f"?session={session_id}&state=error") == [unknown]
    assert bob.get("/tool-calls").json() == {"results": [], "next": None}
    refused(ann.get(f"/tool-calls?session={theirs}"), 404, "session_not_found")
    told = ann.get(f"/tool-calls/{done}").json()
    assert (told["session"], told["output"], told["message"]) == (
        session_id,
        "42",
        MessagePart.objects.get(pk=done).message_id,
    )
    refused(bob.get(f"/tool-calls/{done}"), 404, "tool_call_not_found")
