"""What people do in a chat, over HTTP against real processes, and the events that each of it leaves."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.conversations.conftest import ASKING
from tests.recovery.talks import Talk
from tests.support.waiting import until

Event = dict[str, Any]

ANSWERED: Final = (
    "step.started", "attempt.prepared", "attempt.dispatched", "attempt.response_started",
    "attempt.first_output", "text.started", "text.ended", "attempt.settled", "step.ended",
)  # fmt: skip
CALLING: Final = (
    "step.started", "attempt.prepared", "attempt.dispatched", "attempt.response_started",
    "attempt.first_output", "attempt.settled", "step.ended",
)  # fmt: skip
"""A step that says nothing but calls; each call adds its own."""

STREAMED: Final = ("tool.input.started", "tool.input.ended")
RAN: Final = (*STREAMED, "tool.called", "tool.succeeded")
ASKED: Final = (*STREAMED, "tool.approval_requested")
APPROVED: Final = ("tool.approval_decided", "tool.called", "tool.succeeded")
DENIED: Final = ("tool.approval_decided", "tool.failed")


def events(talk: Talk, session: str) -> list[Event]:
    """The whole log, which must have no gap and say what the messages say."""
    told = talk.call("GET", f"/sessions/{session}/events?limit=500")
    found: list[Event] = told["results"]
    assert [event["seq"] for event in found] == list(range(1, told["head_seq"] + 1))
    texts = {event["data"]["part"]: event["data"]["text"] for event in found if event["type"] == "text.ended"}
    assert texts == {
        part["id"]: part["text"]
        for message in talk.messages(session)
        for part in message["parts"]
        if part["kind"] == "text" and part["state"] == "completed"
    }
    return found


def left(talk: Talk, session: str, *expected: str) -> None:
    """The session's log holds exactly these events, beside that of its creation, in an order that is true."""
    found = events(talk, session)
    told = Counter(event["type"] for event in found)
    assert told == Counter(("session.created", *expected))
    for earlier, later in _ORDER:
        for key in ("message", "part", "attempt"):
            assert not _swapped(found, key, earlier, later), (earlier, later)


_ORDER: Final = (
    ("prompt.admitted", "prompt.promoted"),
    ("step.started", "attempt.prepared"),
    ("attempt.prepared", "attempt.dispatched"),
    ("attempt.dispatched", "attempt.response_started"),
    ("attempt.response_started", "attempt.first_output"),
    ("attempt.first_output", "attempt.settled"),
    ("text.started", "text.ended"),
    ("tool.input.started", "tool.input.ended"),
    ("tool.input.ended", "tool.approval_requested"),
    ("tool.approval_requested", "tool.approval_decided"),
    ("tool.approval_decided", "tool.called"),
    ("tool.input.ended", "tool.called"),
    ("tool.called", "tool.succeeded"),
    ("tool.called", "step.ended"),
    ("tool.succeeded", "step.ended"),
    ("text.ended", "step.ended"),
)


def _swapped(found: list[Event], key: str, earlier: str, later: str) -> bool:
    """Whether, of one message, part or attempt, something was told before what it follows."""
    begun: dict[str, int] = {}
    for event in found:
        about = event["data"].get(key)
        if about is not None and event["type"] == earlier:
            begun.setdefault(about, event["seq"])
    return any(
        event["type"] == later and begun.get(event["data"].get(key), 0) > event["seq"] for event in found
    )


def spoken(talk: Talk, session: str) -> list[str]:
    """The transcript, who wrote what."""
    return [
        message["text"]
        if message["type"] == "user"
        else "".join(part["text"] for part in message["parts"] if part["kind"] == "text")
        for message in talk.messages(session)
    ]


def calls(talk: Talk, session: str) -> list[Any]:
    listed: list[Any] = talk.call("GET", f"/tool-calls?session={session}")["results"]
    return sorted(listed, key=lambda call: call["index"])


def of_prompts(count: int) -> tuple[str, ...]:
    return ("prompt.admitted", "prompt.promoted") * count


@pytest.fixture
def gate(talk: Talk) -> Callable[[], None]:
    """Closed for the tools that wait; call it to open it."""
    path = talk.instance.directory / "open"
    path.unlink(missing_ok=True)
    return path.touch


def test_parallel_calls_are_answered_together(talk: Talk) -> None:
    session = talk.session()
    talk.say(
        session,
        '[[tool calculator {"expression": "6*7"}]][[tool calculator {"expression": "2**10"}]]'
        '[[tool notebook {"action": "write", "name": "n", "text": "kept"}]]',
    )

    talk.until_state(session, "idle")

    said = spoken(talk, session)[-1]
    assert said.startswith("Scripted demo: calculator returned: 42")
    assert "calculator returned: 1024" in said
    assert [call["state"] for call in calls(talk, session)] == ["completed"] * 3
    left(talk, session, *of_prompts(1), *CALLING, *RAN * 3, *ANSWERED)


def test_a_chain_of_three_steps_follows_its_results(talk: Talk) -> None:
    session = talk.session()
    third = "[[tool current_time {}]] [[then It is done]]"
    second = f'[[tool calculator {{"expression": "2+2"}}]] [[then {third}]]'
    talk.say(session, f'[[tool calculator {{"expression": "1+1"}}]] [[then {second}]]')

    talk.until_state(session, "idle")

    assert spoken(talk, session)[1:] == ["", "", "", "Scripted demo: It is done"]
    outputs = [
        part["output"]
        for message in talk.messages(session)
        for part in message["parts"]
        if part["kind"] == "tool"
    ]
    assert outputs[:2] == ["2", "4"]
    assert len(outputs) == len(talk.attempts(session)) - 1 == 3
    left(talk, session, *of_prompts(1), *(*CALLING, *RAN) * 3, *ANSWERED)


def test_a_steer_sent_in_the_middle_of_a_step_is_seen_by_the_next_one(
    talk: Talk, gate: Callable[[], None]
) -> None:
    session = talk.session()
    talk.say(session, "[[tool look {}]]")
    talk.until_entered(session)

    steer = talk.say(session, "Rather say [[words 4]]")
    assert [prompt["id"] for prompt in talk.call("GET", f"/sessions/{session}/prompts")["results"]] == [steer]
    gate()

    talk.until_state(session, "idle")
    messages = talk.messages(session)
    assert [message["type"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[2]["id"] == steer
    assert spoken(talk, session)[-1] == "1 2 3 4"
    left(talk, session, *of_prompts(2), *CALLING, *RAN, *ANSWERED)


def test_three_queued_prompts_are_answered_in_order_one_by_one(talk: Talk, gate: Callable[[], None]) -> None:
    session = talk.session()
    talk.say(session, "[[tool look {}]] [[then First]]")
    talk.until_entered(session)
    for word in ("Second", "Third", "Fourth"):
        talk.say(session, word, delivery="queue")
    assert talk.status(session)["pending"] == {"steer": 0, "queue": 3}
    gate()

    talk.until_state(session, "idle")
    assert spoken(talk, session)[1:] == [
        "",
        "Scripted demo: First",
        "Second",
        "Scripted demo: Second",
        "Third",
        "Scripted demo: Third",
        "Fourth",
        "Scripted demo: Fourth",
    ]
    left(talk, session, *of_prompts(4), *CALLING, *RAN, *ANSWERED * 4)
    promoted = [event["seq"] for event in events(talk, session) if event["type"] == "prompt.promoted"]
    ended = [event["seq"] for event in events(talk, session) if event["type"] == "step.ended"]
    assert [seq for seq in sorted(promoted + ended) if seq in promoted][1:] == promoted[1:]
    for before, after in zip(ended[1:], promoted[1:], strict=False):
        assert before < after, "a queued prompt was taken before the one in front of it was answered"


def test_stop_in_the_middle_of_a_stream_keeps_what_was_said_and_pauses_what_waits(talk: Talk) -> None:
    session = talk.session()
    talk.say(session, "[[delay 20]] [[words 2000]]")
    talk.until_written(session, 3)
    waiting = talk.say(session, "Later", delivery="queue")

    assert talk.call("POST", f"/sessions/{session}/interrupt")["interrupted"] is True

    status = talk.until_state(session, "idle")
    assert status["paused"]
    answer = talk.messages(session)[-1]
    assert answer["state"] == "interrupted"
    words = answer["parts"][0]["text"].split()
    assert 3 <= len(words) < 2000
    assert words == [str(number) for number in range(1, len(words) + 1)]
    assert [prompt["id"] for prompt in talk.call("GET", f"/sessions/{session}/prompts")["results"]] == [
        waiting
    ]
    (attempt,) = talk.attempts(session)
    assert (attempt["state"], attempt["outcome"], attempt["may_be_billed"]) == (
        "settled",
        "interrupted",
        True,
    )
    cut = (*ANSWERED[:-1], "step.failed", "execution.interrupted")
    left(talk, session, "prompt.admitted", *of_prompts(1), *cut, "session.paused")


def test_stop_in_the_middle_of_a_tool_fails_the_call_and_the_next_prompt_is_answered(
    talk: Talk, gate: Callable[[], None]
) -> None:
    session = talk.session()
    talk.say(session, "[[tool set_up {}]][[tool look {}]]")
    talk.until_entered(session, times=2)

    assert talk.call("POST", f"/sessions/{session}/interrupt")["interrupted"] is True

    assert len(talk.until_state(session, "needs_decision")["unknown"]["tools"]) == 1
    gate()
    assert {call["error"] for call in calls(talk, session)} == {"Tool execution interrupted"}
    assert {call["name"]: call["unknown"] for call in calls(talk, session)} == {"set_up": True, "look": False}
    talk.say(session, "[[words 2]]")
    until(lambda: spoken(talk, session)[-1] == "1 2", what="the next prompt was answered")
    until(lambda: not talk.status(session)["owner_alive"], what="the session was released")
    cut = (*CALLING[:-1], "step.failed", "execution.interrupted")
    calls_cut = (*STREAMED, "tool.called", "tool.failed") * 2
    left(talk, session, *of_prompts(2), *cut, *calls_cut, *ANSWERED)


def decide(talk: Talk, call: Any, action: str) -> Any:
    return talk.call("POST", f"/tool-calls/{call['id']}/decide", {"action": action})


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_questions_of_one_step_are_answered_in_either_order(talk: Talk, order: tuple[int, int]) -> None:
    session = talk.session(agent=ASKING)
    talk.say(session, '[[tool calculator {"expression": "1+1"}]][[tool calculator {"expression": "2+2"}]]')
    assert len(talk.until_state(session, "waiting")["waiting"]) == 2
    asked = calls(talk, session)

    decide(talk, asked[order[0]], "approve")
    until(lambda: calls(talk, session)[order[0]]["state"] == "completed", what="the approved call ran")
    assert talk.until_state(session, "waiting")["waiting"] == [asked[order[1]]["id"]]
    decide(talk, asked[order[1]], "deny")

    talk.until_state(session, "idle")
    ended = calls(talk, session)
    assert ended[order[0]]["output"] == ("2", "4")[order[0]]
    assert (ended[order[1]]["state"], ended[order[1]]["approval"]) == ("error", "denied")
    left(talk, session, *of_prompts(1), *CALLING, *ASKED * 2, *APPROVED, *DENIED, *ANSWERED)


def test_a_question_is_answered_after_a_restart_of_all_processes(
    talk: Talk, gate: Callable[[], None]
) -> None:
    session = talk.session(agent=ASKING)
    talk.say(session, "[[tool pay {}]]")
    talk.until_state(session, "waiting")
    talk.say(session, "And this?", delivery="queue")

    talk.kill_everything()
    talk.instance.start()

    status = talk.until_state(session, "waiting")
    assert status["pending"] == {"steer": 0, "queue": 1}
    assert not [line for line in talk.ledger() if line["session"] == session]
    gate()
    decide(talk, calls(talk, session)[0], "approve")
    talk.until_state(session, "idle")
    assert len([line for line in talk.ledger() if line["session"] == session]) == 1
    assert spoken(talk, session)[-3:] == [
        "Scripted demo: pay returned: paid",
        "And this?",
        "Scripted demo: And this?",
    ]
    left(talk, session, *of_prompts(2), *CALLING, *ASKED, *APPROVED, *ANSWERED * 2)
