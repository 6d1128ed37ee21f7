"""Asks a provider, or plays an answer to a reader, and keeps what came of it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from schema.attempts import AttemptError, Usage
from schema.ids import AttemptId
from schema.turns import AssistantTurn, ResultTurn, TextBlock, ToolDefinition, Turn, UserTurn
from sessions_app.providers import (
    answer,
    anthropic,
    classify,
    openai_chat,
    openai_responses,
    port,
    transport,
    wire,
)
from sessions_app.providers.classify import Phase

ATTEMPT = AttemptId("att_000000000001")


@dataclass
class Facts:
    """Phases as a runner would make them durable; can refuse like a worker that lost its fence."""

    refusal: BaseException | None = None
    told: list[str] = field(default_factory=list)
    request_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    async def dispatching(self) -> None:
        self.told.append("dispatching")
        if self.refusal is not None:
            raise self.refusal

    async def response_started(
        self, *, status: int, request_id: str | None, headers: Mapping[str, str]
    ) -> None:
        self.told.append(f"response {status}")
        self.request_id = request_id
        self.headers = headers


@dataclass
class Result:
    """What came of one attempt."""

    items: list[port.Item] = field(default_factory=list)
    error: AttemptError | None = None
    usage: Usage | None = None

    @property
    def outcome(self) -> str:
        """``completed``, or the class of the error."""
        return "completed" if self.error is None else self.error.error_class

    @property
    def reason(self) -> str | None:
        return None if self.error is None else self.error.reason

    @property
    def finish(self) -> str | None:
        last = self.items[-1] if self.items else None
        return last.finish if isinstance(last, port.Finished) else None

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, port.TextDelta))

    @property
    def fragments(self) -> list[str]:
        return [item.text for item in self.items if isinstance(item, port.TextDelta)]

    @property
    def reasoning(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, port.ReasoningDelta))

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Id, name and raw arguments of each call."""
        started = [item for item in self.items if isinstance(item, port.CallStarted)]
        return [(call.call_id, call.name, self._arguments(call.key)) for call in started]

    def replay(self, key: str) -> Mapping[str, object]:
        closed = [item for item in self.items if isinstance(item, port.PartClosed) and item.key == key]
        assert len(closed) == 1
        return closed[0].replay

    def _arguments(self, key: str) -> str:
        deltas = [item for item in self.items if isinstance(item, port.CallDelta)]
        return "".join(item.arguments for item in deltas if item.key == key)


def request(
    *turns: Turn | str,
    model: str = "some-model",
    system: str = "",
    tools: tuple[ToolDefinition, ...] = (),
    max_output_tokens: int | None = None,
    earlier_attempts: int = 0,
    hosted_tools: tuple[Mapping[str, JsonValue], ...] = (),
) -> port.ModelRequest:
    return port.ModelRequest(
        attempt=ATTEMPT,
        model=model,
        turns=tuple(UserTurn(text=turn) if isinstance(turn, str) else turn for turn in turns or ("Hi",)),
        system=system,
        tools=tools,
        max_output_tokens=max_output_tokens,
        earlier_attempts=earlier_attempts,
        hosted_tools=hosted_tools,
    )


def said(*texts: str) -> AssistantTurn:
    return AssistantTurn(blocks=tuple(TextBlock(text=text) for text in texts))


def result(output: str, *, name: str = "add", call_id: str = "c1", failed: bool = False) -> ResultTurn:
    return ResultTurn(call_id=call_id, name=name, output=output, failed=failed)


async def ask(
    provider: port.Provider, asked: port.ModelRequest | None = None, facts: Facts | None = None
) -> Result:
    """One attempt; a ProviderError is part of the result, everything else is raised."""
    came = Result()
    try:
        async for item in provider.stream(asked or request(), facts or Facts()):
            came.items.append(item)
    except port.ProviderError as error:
        came.error = error.error
        came.usage = error.usage
    return came


class Script:
    """A source that gives its pieces and then ends: cleanly, or as the break says."""

    def __init__(self, pieces: Iterable[bytes], end: transport.Broken | None = None) -> None:
        self.phase = Phase.HEADERS
        self._pieces = list(pieces)
        self._end = end

    async def read(self) -> bytes | None:
        if self._pieces:
            return self._pieces.pop(0)
        if self._end is not None:
            raise self._end
        return None

    def event_arrived(self) -> None:
        self.phase = max(self.phase, Phase.FIRST_EVENT)

    def output_arrived(self) -> None:
        self.phase = max(self.phase, Phase.FIRST_OUTPUT)

    def terminal_marker_arrived(self) -> None:
        self.phase = Phase.TERMINAL


def chat_reader() -> wire.Reader:
    return openai_chat.ChatReader()


def response_reader() -> wire.Reader:
    return openai_responses.Responses(is_background=True).reader()


def message_reader() -> wire.Reader:
    return anthropic.MessageReader()


async def play(reader: wire.Reader, *pieces: bytes, end: transport.Broken | None = None) -> Result:
    """Read an answer that arrives in these pieces."""
    came = Result()
    source = Script(pieces, end)
    try:
        async for item in answer.items(source, reader):
            came.items.append(item)
    except transport.Broken as broken:
        came.error = classify.broken(phase=source.phase, kind=broken.kind, detail=broken.detail)
    except wire.Reported as reported:
        came.error = classify.reported(payload=reported.payload, phase=source.phase)
    except wire.Unusable as unusable:
        came.error = classify.unusable(reason=unusable.reason, detail=str(unusable))
    came.usage = reader.usage
    return came


async def eventually(condition: Callable[[], Any], *, within: float = 5.0) -> None:
    """Wait until the condition holds; raises TimeoutError."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 (the condition is not ours to signal)
            await asyncio.sleep(0.005)
