"""Every format against a mock that others wrote; its journal counts the physical requests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from schema.turns import AssistantTurn, CallBlock, ToolDefinition
from sessions_app.providers import anthropic, openai_chat, port
from sessions_app.providers.background import BackgroundProvider
from sessions_app.providers.catalog import Access
from sessions_app.providers.remote import RemoteProvider
from tests.providers.asking import ATTEMPT, Facts, ask, request, result
from tests.support import aimock
from tests.support.requirements import requires

pytestmark = requires("npm")

TEXT = "Hello from the mock, in fragments."
ADD = ToolDefinition(name="add", description="Adds.", parameters={"type": "object", "properties": {}})


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[aimock.Mock]:
    with aimock.running(tmp_path_factory.mktemp("aimock")) as mock:
        yield mock


@pytest.fixture
def mock(started: aimock.Mock, monkeypatch: pytest.MonkeyPatch) -> Iterator[aimock.Mock]:
    """The mock with its fixtures. In the end it has seen one request for each attempt, whatever came of it."""
    attempts: list[port.ModelRequest] = []
    stream = RemoteProvider.stream

    def counted(self: Any, request: port.ModelRequest, phases: port.Phases) -> Any:
        attempts.append(request)
        return stream(self, request, phases)

    monkeypatch.setattr(RemoteProvider, "stream", counted)
    started.reset()
    started.add(match={"userMessage": "cut"}, response={"content": TEXT}, truncateAfterChunks=2)
    started.add(match={"userMessage": "think"}, response={"content": TEXT, "reasoning": "A plan."})
    started.add(match={"toolCallId": "call_x"}, response={"content": "It is 3."})
    call = {"name": "add", "arguments": {"a": 1}, "id": "call_x"}
    started.add(match={"userMessage": "add"}, response={"toolCalls": [call, call | {"id": "call_y"}]})
    started.add(match={"userMessage": "hello"}, response={"content": TEXT})
    yield started
    assert attempts
    assert len(started.journal()) == len(attempts)


Make = Callable[[str], port.Provider]


def chat(url: str) -> port.Provider:
    wire_format = openai_chat.ChatCompletions(limit_field="max_tokens")
    access = Access(base_url=f"{url}/v1", key="key", is_own=True)
    return RemoteProvider(name="openai", wire_format=wire_format, access=access)


def messages(url: str) -> port.Provider:
    access = Access(base_url=url, key="key", is_own=True)
    return RemoteProvider(name="anthropic", wire_format=anthropic.Messages(), access=access)


def responses(url: str) -> port.Provider:
    return BackgroundProvider(
        name="openai-responses", access=Access(base_url=f"{url}/v1", key="key", is_own=True)
    )


ALL = pytest.mark.parametrize("make", [chat, messages, responses])


@ALL
async def test_text_streams_to_its_end_with_one_request(mock: aimock.Mock, make: Make) -> None:
    facts = Facts()

    came = await ask(make(mock.url), request("hello"), facts)

    assert came.text == TEXT
    assert len(came.fragments) > 1
    assert came.finish == "stop"
    assert facts.request_id
    (entry,) = mock.journal()
    assert entry["headers"]["x-client-request-id"] == ATTEMPT


@ALL
async def test_reasoning_comes_apart_from_the_text(mock: aimock.Mock, make: Make) -> None:
    came = await ask(make(mock.url), request("think"))

    assert (came.reasoning, came.text, came.finish) == ("A plan.", TEXT, "stop")


@ALL
async def test_calls_and_their_results_go_round(mock: aimock.Mock, make: Make) -> None:
    called = await ask(make(mock.url), request("add", tools=(ADD,)))
    blocks = tuple(CallBlock(call_id=call_id, name="add", input={"a": 1}) for call_id, *_ in called.calls)
    results = [result("3", call_id=call_id) for call_id, *_ in reversed(called.calls)]
    answered = await ask(make(mock.url), request("add", AssistantTurn(blocks=blocks), *results, tools=(ADD,)))

    assert [call[1:] for call in called.calls] == [("add", '{"a":1}')] * 2
    assert called.finish == "tool_calls"
    assert (answered.text, answered.finish) == ("It is 3.", "stop")
    assert len(mock.journal()) == 2


@ALL
async def test_a_cut_in_the_stream_is_partial_and_not_sent_again(mock: aimock.Mock, make: Make) -> None:
    came = await ask(make(mock.url), request("cut"))

    assert came.outcome == "partial"
    assert TEXT.startswith(came.text)
    assert len(mock.journal()) == 1


@ALL
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, {"message": "slow down", "type": "rate_limit_error"}, ("rejected", "rate_limit")),
        (429, {"message": "pay", "type": "insufficient_quota"}, ("rejected", "quota")),
        (529, {"message": "Overloaded", "type": "overloaded_error"}, ("rejected", "overloaded")),
        (500, {"message": "oops", "type": "api_error"}, ("ambiguous", "provider_error")),
        (400, {"message": "bad", "type": "invalid_request_error"}, ("rejected", "bad_request")),
    ],
)
async def test_a_status_is_classified_and_not_sent_again(
    mock: aimock.Mock, make: Make, status: int, body: dict[str, Any], expected: tuple[str, str]
) -> None:
    mock.fail_next(status, **body)

    came = await ask(make(mock.url), request("hello"))

    assert (came.outcome, came.reason) == expected
    assert came.error is not None
    assert came.error.retry_after == (1.0 if expected[1] == "rate_limit" else None)
    assert [entry["response"]["status"] for entry in mock.journal()] == [status]
