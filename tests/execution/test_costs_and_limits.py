"""Limits, prices and capabilities of a model, in a drain over a real socket."""

from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app import sessions
from sessions_app.models import ChatModel, Provider
from tests.execution.conftest import Chat, Worker
from tests.providers.fixtures import DONE, STOP, delta, frame
from tests.support.processes import free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import answer, broken_connection, message_frames
from tests.support.waiting import until

USAGE = frame({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}})


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with StubProcess.running(free_port()) as stub:
        yield stub


@pytest.fixture
def person(worker: Worker, stub: StubProcess, django_user_model: Any) -> Any:
    Provider.objects.create(name="mine", wire_format="chat", base_url=f"{stub.url}/v1")
    Provider.objects.create(name="theirs", wire_format="messages", base_url=stub.url)
    return django_user_model.objects.create_user("ann")


def describe(name: str = "mine:m", **fields: Any) -> None:
    provider, _, model = name.partition(":")
    ChatModel.objects.create(provider=provider, model=model, **fields)


def usage(chat: Chat) -> dict[str, Any]:
    return dict(sessions.session_shape(chat.row, chat.status())["usage"])


HELLO = delta(content="Hello")
ALIVE = [": ping\n\n"] * 500


@pytest.mark.parametrize(
    ("limit", "script", "error_class"),
    [
        ("first_output_seconds", broken_connection("hold"), "ambiguous"),
        ("first_output_seconds", answer(*ALIVE, pause=0.02), "partial"),
        ("silence_seconds", answer(HELLO, end="hold"), "partial"),
        ("keep_alive_seconds", answer(HELLO, *ALIVE, pause=0.02), "partial"),
        ("attempt_seconds", answer(*[HELLO] * 500, pause=0.02), "partial"),
    ],
    ids=["no answer", "alive before output", "silence", "alive after output", "for ever"],
)
def test_a_limit_of_the_model_that_is_hit_after_the_dispatch_leaves_the_attempt_unknown(
    person: Any, stub: StubProcess, limit: str, script: Any, error_class: str
) -> None:
    fields: dict[str, Any] = {limit: 0.3}
    describe(**fields)
    stub.script(script)
    chat = Chat(person, model="mine:m")

    chat.say("Hi")

    chat.settled()
    (attempt,) = chat.attempts()
    error = attempt.error or {}
    assert (attempt.state, error["error_class"], error["reason"]) == ("unknown", error_class, "timeout")
    assert attempt.may_be_billed
    assert chat.answers()[0].state == "unknown"
    assert len(stub.journal()) == 1
    assert usage(chat)["uncounted_attempts"] == 1


@pytest.mark.both_databases
def test_usage_and_cost_are_told_of_attempt_message_and_session(person: Any, stub: StubProcess) -> None:
    describe(input_price=2, output_price=8)
    stub.script(answer(HELLO, STOP, USAGE, DONE), answer(HELLO, STOP, USAGE, DONE))
    chat = Chat(person, model="mine:m")

    for text in ("One", "Two"):
        chat.say(text)
        chat.settled()

    counted = {"input_tokens": 1000, "output_tokens": 100, "cost": 0.0028}
    assert [attempt.usage for attempt in chat.attempts()] == [counted] * 2
    assert [message.usage for message in chat.answers()] == [counted] * 2
    assert usage(chat) == {
        "input_tokens": 2000,
        "output_tokens": 200,
        "cost": 0.0056,
        "uncounted_attempts": 0,
    }


def test_a_cost_that_the_provider_tells_is_the_cost(person: Any, stub: StubProcess) -> None:
    told = {"prompt_tokens": 5, "completion_tokens": 1, "cost": 0.00014}
    stub.script(answer(HELLO, STOP, frame({"choices": [], "usage": told}), DONE))
    chat = Chat(person, model="mine:m")

    chat.say("Hi")

    chat.settled()
    assert usage(chat)["cost"] == 0.00014


def test_without_prices_nothing_is_said_of_the_cost(person: Any, stub: StubProcess) -> None:
    stub.script(answer(HELLO, STOP, USAGE, DONE))
    chat = Chat(person, model="mine:m")

    chat.say("Hi")

    chat.settled()
    assert "cost" not in (chat.answers()[0].usage or {})
    assert usage(chat)["cost"] is None


def test_what_was_counted_before_a_stop_is_kept(person: Any, stub: StubProcess) -> None:
    describe("theirs:m", input_price=1_000, output_price=1_000)
    frames = message_frames("Hello", stop_reason=None, stop=False)
    stub.script(answer(*frames, end="hold"))
    chat = Chat(person, model="theirs:m")
    chat.say("Hi")
    until(lambda: chat.events()[-1] == "text.started", what="the first words")

    chat.stop()

    chat.settled()
    (attempt,) = chat.attempts()
    assert attempt.outcome == "interrupted"
    assert attempt.may_be_billed
    assert attempt.usage == {"input_tokens": 5, "output_tokens": 1, "cost": 0.006}
    assert chat.answers()[0].usage == attempt.usage


def test_a_model_that_cannot_call_tools_is_offered_none_and_asked_for_no_more_than_its_limit(
    person: Any, stub: StubProcess
) -> None:
    describe(tools=False, max_output_tokens=77)
    chat = Chat(person, model="mine:m")

    chat.say("Hi")

    chat.settled()
    sent = stub.journal()[0].json()
    assert "tools" not in sent
    assert sent["max_tokens"] == 77


def test_a_model_that_was_switched_off_fails_the_step_and_sends_nothing(
    person: Any, stub: StubProcess
) -> None:
    chat = Chat(person, model="mine:m")
    describe(enabled=False)

    chat.say("Hi")

    chat.settled()
    assert chat.error()["reason"] == "configuration"
    assert "switched off by an administrator" in chat.error()["message"]
    assert stub.journal() == []
