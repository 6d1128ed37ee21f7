"""How an answer can end over a real socket: its class, what a person reads, and one request per attempt."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sessions_app import sessions
from sessions_app.execution import retries
from sessions_app.web import words
from tests.execution.conftest import Chat, Worker
from tests.providers.fixtures import DONE, STOP, delta, frame
from tests.support.processes import free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import Script, answer, broken_connection, document, message_frames


@dataclass(frozen=True, kw_only=True)
class Case:
    """An answer, and the state, class and reason that it comes to."""

    script: Script
    state: str
    error_class: str | None = None
    reason: str | None = None
    says: str = ""
    model: str = "openai:m"
    requests: int = 1


HELLO = delta(content="Hello")
OVERFLOW = {"error": {"code": "context_length_exceeded", "message": "8192 tokens, 8554 given"}}
LIMITED = {"error": {"type": "rate_limit_error", "message": "slow down"}}

CASES = {
    "whole": Case(script=answer(HELLO, STOP, DONE), state="completed"),
    "no finish, but DONE": Case(script=answer(HELLO, DONE), state="completed"),
    "no DONE": Case(script=answer(HELLO, STOP), state="completed"),
    "length": Case(script=answer(HELLO, delta("length")), state="completed", says="ends here"),
    "unclosed thought": Case(
        script=answer(delta(content="<think>hm"), STOP),
        state="failed",
        error_class="failed",
        reason="empty",
        says="Send the message again",
    ),
    "cut": Case(script=answer(HELLO), state="unknown", error_class="partial", reason="cut", says="not known"),
    "reset": Case(script=answer(HELLO, end="reset"), state="unknown", error_class="partial", reason="cut"),
    "half a frame": Case(
        script=answer(HELLO, b'data: {"choi'), state="unknown", error_class="partial", reason="cut"
    ),
    "cut message": Case(
        script=answer(*message_frames("Hello", stop_reason=None, stop=False)),
        model="anthropic:m",
        state="unknown",
        error_class="partial",
        reason="cut",
    ),
    "no answer": Case(
        script=broken_connection("close"), state="unknown", error_class="ambiguous", reason="network"
    ),
    "bad gateway": Case(
        script=document("<html>", status=502),
        state="unknown",
        error_class="ambiguous",
        reason="provider_error",
    ),
    "error in the stream": Case(
        script=answer(HELLO, frame({"error": {"code": 502, "message": "gone"}})),
        state="failed",
        error_class="failed",
        reason="provider_error",
        says="may have been billed",
    ),
    "empty": Case(
        script=answer(STOP, DONE),
        state="failed",
        error_class="failed",
        reason="empty",
        says="Send the message again",
    ),
    "reasoning only": Case(
        script=answer(delta(reasoning="hm"), STOP),
        state="failed",
        error_class="failed",
        reason="empty",
        says="only reasoned",
    ),
    "filtered": Case(
        script=answer(delta("content_filter")),
        state="failed",
        error_class="failed",
        reason="content_filter",
        says="Edit the message",
    ),
    "filtered after text": Case(
        script=answer(HELLO, delta("content_filter")),
        state="failed",
        reason="content_filter",
        says="Edit the message",
    ),
    "too long": Case(
        script=document(OVERFLOW, status=400),
        state="failed",
        error_class="rejected",
        reason="overflow",
        says="start a new chat",
    ),
    "too long, in the stream": Case(
        script=answer(frame({"error": {"code": 400, "message": "prompt is too long: 9 > 8"}})),
        state="failed",
        error_class="failed",
        reason="overflow",
        says="start a new chat",
    ),
    "quota": Case(
        script=document({"error": {"type": "insufficient_quota"}}, status=429),
        state="failed",
        error_class="rejected",
        reason="quota",
    ),
    "redirect": Case(
        script=document("", status=308, headers={"location": "/v1/chat/completions"}),
        state="failed",
        error_class="rejected",
        reason="configuration",
        says="Set the base URL",
    ),
    "rate limit": Case(
        script=document(LIMITED, status=429, headers={"retry-after": "0"}), state="completed", requests=2
    ),
    "rate limit in the stream": Case(script=answer(frame(LIMITED)), state="completed", requests=2),
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


def test_every_end_has_its_class_its_words_and_one_request_per_attempt(
    person: Any, stub: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY_SECONDS", 0.0)
    sent = 0
    for name, case in CASES.items():
        stub.script(case.script)
        chat = Chat(person, model=case.model)

        chat.say("Hi")

        chat.settled()
        (message,) = chat.answers()
        attempts = chat.attempts()
        error = attempts[-1].error or {}
        assert (message.state, error.get("error_class")) == (case.state, case.error_class), name
        assert (message.error or {}).get("reason") == case.reason, name
        assert case.says in shown(chat), (name, shown(chat))
        sent += case.requests
        assert len(attempts) == case.requests, name
        assert len(stub.journal()) == sent, name
        assert attempts[-1].may_be_billed == (case.error_class != "rejected"), name


def shown(chat: Chat) -> str:
    """What the page says under the answer, once nobody has to decide any more."""
    message = sessions.message_shapes(sessions.messages_of(chat.row))[-1]
    return words.note({**message, "unknown": []})
