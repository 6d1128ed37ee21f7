"""What a provider wants back with its own answers is kept by a step and sent with the next request."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from sessions_app import sessions
from sessions_app.models import Agent, MessagePart
from tests.execution.conftest import Chat, Worker
from tests.support.processes import free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import Script, answer, chat_frames, message_frames

RESULT: Any = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "title": "Weather", "url": "https://example.org"}],
}
THOUGHT: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
SEARCH: Any = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather"},
}
MESSAGE: Any = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}],
}


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with StubProcess.running(free_port()) as stub:
        yield stub


@pytest.fixture
def person(worker: Worker, stub: StubProcess, settings: Any, django_user_model: Any) -> Any:
    settings.OPENAI_BASE_URL = f"{stub.url}/v1"
    settings.ANTHROPIC_BASE_URL = stub.url
    return django_user_model.objects.create_user("ann")


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n"


def block(index: int, **block: Any) -> list[str]:
    return [
        event("content_block_start", index=index, content_block=block),
        event("content_block_stop", index=index),
    ]


def searched() -> Script:
    items = [
        event("response.output_item.done", output_index=index, item=item)
        for index, item in enumerate((THOUGHT, SEARCH, MESSAGE))
    ]
    return answer(
        event("response.created", response={"id": "resp_1", "status": "queued"}),
        *items,
        event("response.completed", response={"id": "resp_1", "status": "completed"}),
    )


def test_withheld_thinking_and_hosted_calls_go_back_to_anthropic(person: Any, stub: StubProcess) -> None:
    call = {"id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
    stub.script(
        answer(
            event("message_start", message={"id": "msg_1", "usage": {"input_tokens": 5}}),
            *block(0, type="redacted_thinking", data="secret"),
            *block(1, type="server_tool_use", **call),
            *block(2, **RESULT),
            *block(3, type="text", text="Sunny."),
            event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}),
            event("message_stop"),
        )
    )
    chat = Chat(person, model="anthropic:claude")

    chat.say("Weather?")
    assert chat.settled().state == "idle"
    chat.say("Thanks")
    assert chat.settled().state == "idle"

    assert stub.journal()[1].json()["messages"][1]["content"] == [
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "server_tool_use", **call},
        RESULT,
        {"type": "text", "text": "Sunny."},
    ]
    kinds = MessagePart.objects.filter(message=chat.answers()[0]).order_by("index")
    assert list(kinds.values_list("kind", "text", "state")) == [
        ("reasoning", "", "completed"),
        ("tool", "", "completed"),
        ("text", "Sunny.", "completed"),
    ]


def test_encrypted_reasoning_and_hosted_calls_go_back_to_openai(person: Any, stub: StubProcess) -> None:
    stub.script(searched())
    chat = Chat(person, model="openai-responses:gpt")

    chat.say("Weather?")
    assert chat.settled().state == "idle"
    chat.say("Thanks")
    assert chat.settled().state == "idle"

    sent = stub.journal()[1].json()
    assert sent["input"] == [
        {"role": "user", "content": "Weather?"},
        THOUGHT,
        SEARCH,
        MESSAGE,
        {"role": "user", "content": "Thanks"},
    ]
    assert (sent["background"], sent["store"]) == (True, True)


def test_what_one_model_wants_back_is_not_sent_to_another(person: Any, stub: StubProcess) -> None:
    stub.script(searched())
    chat = Chat(person, model="openai-responses:gpt")
    chat.say("Weather?")
    chat.settled()

    sessions.update(session_id=chat.id, model="openai-responses:other", now=timezone.now())
    chat.say("Thanks")
    chat.settled()

    items = stub.journal()[1].json()["input"]
    assert [item.get("type", "message") for item in items] == ["message"] * 4
    assert "id" not in items[2]


def deep() -> Any:
    value: Any = []
    for _ in range(300):
        value = [value]
    return value


@pytest.mark.parametrize("odd", [{"a": deep()}, {"a": float("nan")}, {"a": "\x00"}, {"\ud800": 1}], ids=str)
def test_what_cannot_be_stored_as_it_came_is_told_in_words(person: Any, stub: StubProcess, odd: Any) -> None:
    stub.script(
        answer(
            event("message_start", message={"id": "msg_1"}),
            *block(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
            *block(1, **RESULT | {"content": [{"title": "Weather", "more": odd}]}),
            *block(2, type="text", text="Sunny."),
            event("message_delta", delta={"stop_reason": "end_turn"}),
            event("message_stop"),
        )
    )
    chat = Chat(person, model="anthropic:claude")

    chat.say("Weather?")
    assert chat.settled().state == "idle"
    chat.say("Thanks")
    assert chat.settled().state == "idle"

    kinds = [each["type"] for each in stub.journal()[1].json()["messages"][1]["content"]]
    assert kinds == ["text", "text"]


# Tools that the provider is offered to run itself

OFFERED: Any = {
    "anthropic": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
    "openai-responses": [{"type": "web_search"}],
}


def searching(chat: Chat, *, steps: int = 25) -> None:
    Agent.objects.create(name="default", hosted_tools=OFFERED, tool_modes={"*": "deny"}, steps=steps)
    chat.say("Weather?")
    chat.settled()


@pytest.mark.parametrize("model", ["anthropic:claude", "openai-responses:gpt"])
def test_an_agent_offers_a_provider_its_own_tools_and_the_attempt_says_so(
    person: Any, stub: StubProcess, model: str
) -> None:
    chat = Chat(person, model=model)

    searching(chat)

    (sent,) = [entry.json() for entry in stub.journal()]
    assert sent["tools"] == OFFERED[model.partition(":")[0]]
    assert [attempt.hosted_tools for attempt in chat.attempts()] == [True]


def test_a_provider_without_tools_of_its_own_and_the_last_step_are_offered_none(
    person: Any, stub: StubProcess
) -> None:
    other, last = Chat(person, model="openai:gpt"), Chat(person, model="anthropic:claude")

    searching(other)
    Agent.objects.all().delete()
    searching(last, steps=1)

    assert not [entry for entry in stub.journal() if "tools" in entry.json()]
    assert [attempt.hosted_tools for chat in (other, last) for attempt in chat.attempts()] == [False] * 2


@pytest.mark.parametrize(
    ("model", "cut"),
    [
        ("anthropic:claude", answer(*message_frames("Sun", stop_reason=None, stop=False), end="cut")),
        ("openai:gpt", answer(*chat_frames("Sun", finish=None, usage=False, done=False), end="cut")),
    ],
)
def test_after_a_cut_a_person_is_asked_where_the_provider_had_tools_to_run(
    person: Any, stub: StubProcess, settings: Any, model: str, cut: Script
) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "continue"
    chat = Chat(person, model=model)
    stub.script(cut)

    searching(chat)

    had_tools = model.startswith("anthropic")
    assert chat.status().state == ("needs_decision" if had_tools else "idle")
    assert len(stub.journal()) == (1 if had_tools else 2)


def test_an_overload_told_in_the_stream_is_not_tried_again_where_the_provider_had_tools_to_run(
    person: Any, stub: StubProcess
) -> None:
    overloaded = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    stub.script(answer(event("message_start", message={"id": "msg_1"}), overloaded))
    chat = Chat(person, model="anthropic:claude")

    searching(chat)

    assert [attempt.outcome for attempt in chat.attempts()] == ["failed"]
    assert chat.error()["error_class"] == "failed"
    assert len(stub.journal()) == 1


def test_an_answer_that_the_provider_paused_goes_on_in_the_next_step(person: Any, stub: StubProcess) -> None:
    call = {"id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
    stub.script(
        answer(
            event("message_start", message={"id": "msg_1"}),
            *block(0, type="server_tool_use", **call),
            *block(1, **RESULT),
            event("message_delta", delta={"stop_reason": "pause_turn"}),
            event("message_stop"),
        )
    )
    chat = Chat(person, model="anthropic:claude")

    searching(chat)

    assert [message.finish for message in chat.answers()] == ["paused", "stop"]
    went_on = stub.journal()[1].json()["messages"]
    assert went_on[1]["content"] == [{"type": "server_tool_use", **call}, RESULT]
    assert len(stub.journal()) == 2


def test_an_answer_that_is_paused_in_the_last_step_ends_there(person: Any, stub: StubProcess) -> None:
    stub.script(answer(*message_frames("Well", stop_reason="pause_turn")))
    chat = Chat(person, model="anthropic:claude")

    searching(chat, steps=1)

    assert chat.status().state == "idle"
    assert len(stub.journal()) == 1
