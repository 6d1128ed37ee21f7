"""Every wire format over real HTTP: what came of each answer, and one request for each attempt."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sessions_app.models import MessagePart
from tests.execution.conftest import Chat, Worker
from tests.support.processes import free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import (
    Script,
    answer,
    broken_connection,
    chat_frames,
    document,
    message_frames,
    response_events,
)

CALLS = ((1, 1), (2, 2))
"""The arguments of calls beside each other."""


def sse(payload: Any, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(payload)}\n\n"


def event(kind: str, **fields: Any) -> str:
    return sse({"type": kind} | fields, kind)


def expression(a: int, b: int) -> str:
    return json.dumps({"expression": f"{a}+{b}"})


def chat_calls() -> list[str]:
    made = [
        {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": "calculator", "arguments": expression(*each)},
        }
        for index, each in enumerate(CALLS)
    ]
    frames = [({"tool_calls": made}, None), ({}, "tool_calls")]
    return [
        sse({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        for delta, finish in frames
    ] + ["data: [DONE]\n\n"]


def message_calls() -> list[str]:
    frames = [event("message_start", message={"id": "msg_1", "usage": {"input_tokens": 5}})]
    for index, each in enumerate(CALLS):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": "calculator", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": expression(*each)}
        frames += [
            event("content_block_start", index=index, content_block=block),
            event("content_block_delta", index=index, delta=delta),
            event("content_block_stop", index=index),
        ]
    return [*frames, event("message_delta", delta={"stop_reason": "tool_use"}), event("message_stop")]


def response_calls() -> list[str]:
    frames = [event("response.created", sequence_number=0, response={"id": "resp_1", "status": "queued"})]
    for index, each in enumerate(CALLS):
        item = {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": f"call_{index}",
            "name": "calculator",
            "arguments": expression(*each),
            "status": "completed",
        }
        done = {"sequence_number": index + 1, "output_index": index, "item": item}
        frames.append(event("response.output_item.done", **done))
    ended = {"id": "resp_1", "status": "completed"}
    return [*frames, event("response.completed", sequence_number=len(CALLS) + 1, response=ended)]


@dataclass(frozen=True, kw_only=True)
class Format:
    model: str
    text: Callable[..., list[str]]
    calls: Callable[[], list[str]]
    unended: dict[str, Any]
    """What makes the frames of a text one whose end was not told."""


FORMATS = {
    "chat": Format(
        model="openai:gpt",
        text=chat_frames,
        calls=chat_calls,
        unended={"finish": None, "usage": False, "done": False},
    ),
    "anthropic": Format(
        model="anthropic:claude",
        text=message_frames,
        calls=message_calls,
        unended={"stop_reason": None, "stop": False},
    ),
    "responses": Format(
        model="openai-responses:gpt", text=response_events, calls=response_calls, unended={"status": None}
    ),
}
every_format = pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS.keys())


@pytest.fixture(scope="module")
def running() -> Iterator[StubProcess]:
    with StubProcess.running(free_port()) as stub:
        yield stub


@pytest.fixture
def stub(running: StubProcess) -> StubProcess:
    running.reset()
    return running


@pytest.fixture
def person(worker: Worker, stub: StubProcess, settings: Any, django_user_model: Any) -> Any:
    settings.OPENAI_BASE_URL = f"{stub.url}/v1"
    settings.ANTHROPIC_BASE_URL = stub.url
    settings.OPENAI_RESPONSES_BACKGROUND = False
    return django_user_model.objects.create_user("ann")


@dataclass
class Asked:
    """A chat that was asked once, with the scripts that the stub answers by."""

    chat: Chat
    stub: StubProcess

    def assert_one_request_per_attempt(self, count: int) -> None:
        sent = [entry.headers.get("x-client-request-id") for entry in self.stub.journal()]
        made = [attempt.client_request_id for attempt in self.chat.attempts()]
        assert sent == made
        assert len(set(made)) == count


@pytest.fixture
def ask(person: Any, stub: StubProcess) -> Callable[..., Asked]:
    def asked(wire: Format, *scripts: Script) -> Asked:
        stub.script(*scripts)
        chat = Chat(person, model=wire.model)
        chat.say("Hello")
        chat.settled()
        return Asked(chat, stub)

    return asked


@every_format
def test_text_and_usage_of_an_answer(ask: Callable[..., Asked], wire: Format) -> None:
    asked = ask(wire, answer(*wire.text("Sun", "ny.")))

    assert asked.chat.texts() == ["Hello", "Sunny."]
    (attempt,) = asked.chat.attempts()
    assert attempt.outcome == "completed"
    assert attempt.usage is not None
    assert attempt.usage["input_tokens"] == 5
    asked.assert_one_request_per_attempt(1)


@every_format
def test_calls_beside_each_other_are_run_and_their_results_go_back(
    ask: Callable[..., Asked], wire: Format
) -> None:
    asked = ask(wire, answer(*wire.calls()), answer(*wire.text("Done")))

    outputs = MessagePart.objects.filter(session_id=asked.chat.id, kind="tool").order_by("index")
    assert list(outputs.values_list("output", flat=True)) == ["2", "4"]
    assert asked.chat.texts()[-1] == "Done"
    asked.assert_one_request_per_attempt(2)


@every_format
@pytest.mark.parametrize("after", [{"retry-after": "0"}, {"retry-after-ms": "10"}], ids=["seconds", "ms"])
def test_a_rate_limit_is_waited_for_and_asked_again_by_another_attempt(
    ask: Callable[..., Asked], wire: Format, after: dict[str, str]
) -> None:
    limited = document({"error": {"type": "rate_limit_error", "message": "slow"}}, status=429, headers=after)

    asked = ask(wire, limited, answer(*wire.text("Now")))

    assert asked.chat.texts() == ["Hello", "Now"]
    assert [attempt.outcome for attempt in asked.chat.attempts()] == ["failed", "completed"]
    asked.assert_one_request_per_attempt(2)


@every_format
@pytest.mark.parametrize(
    ("script", "state"),
    [
        pytest.param(document({"error": {"message": "no"}}, status=500), "unknown", id="500"),
        pytest.param(broken_connection("close"), "unknown", id="cut before headers"),
        pytest.param(broken_connection("reset"), "unknown", id="reset before headers"),
        pytest.param(document("", status=307, headers={"location": "/v1/other"}), "settled", id="307"),
        pytest.param(document({"error": {"message": "no"}}, status=401), "settled", id="401"),
    ],
)
def test_an_answer_that_is_none_is_asked_for_once(
    ask: Callable[..., Asked], wire: Format, script: Script, state: str
) -> None:
    asked = ask(wire, script)

    assert [attempt.state for attempt in asked.chat.attempts()] == [state]
    asked.assert_one_request_per_attempt(1)


@every_format
@pytest.mark.parametrize("end", ["clean", "cut", "reset"])
def test_an_answer_that_ends_without_saying_so_is_unknown_with_its_text_and_is_asked_for_once(
    ask: Callable[..., Asked], wire: Format, end: Any
) -> None:
    asked = ask(wire, answer(*wire.text("Half", " of it", **wire.unended), end=end))

    (attempt,) = asked.chat.attempts()
    assert (attempt.state, asked.chat.error()["error_class"]) == ("unknown", "partial")
    assert asked.chat.texts()[-1] == "Half of it"
    asked.assert_one_request_per_attempt(1)
