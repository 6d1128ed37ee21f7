"""The Anthropic Messages API, as Anthropic and the servers compatible with it speak it."""

import json
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from schema import text
from schema.attempts import Usage
from schema.ids import AttemptId
from schema.turns import AssistantBlock, CallBlock, ReasoningBlock, ResultTurn, TextBlock, ToolDefinition
from sessions_app.providers import call_ids, groups, port, sse, wire
from sessions_app.providers.groups import AssistantGroup, UserGroup
from sessions_app.providers.parts import OpenPart
from sessions_app.providers.scrub import Scrubber

VERSION: Final = "2023-06-01"
DEFAULT_MAX_TOKENS: Final = 4096
"""The API wants a limit in every request."""

LONGEST_OUTPUT: Final = 16 * 1024
"""Of a hosted result, as people read it; what goes back is the block as it came."""

_STOP_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause_turn": "paused",
}
_EVENTS: Final = frozenset(
    {
        "",
        "message",
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    }
)
"""Events of other names are skipped unread; without a name the payload tells its type."""
_UNANNOUNCED: Final = {"text_delta": "text", "thinking_delta": "thinking"}
_CALL_TYPES: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class Messages:
    """The wire format of ``POST /v1/messages``."""

    path = "/v1/messages"
    counts_cache_as_input = False

    def headers(self, *, key: str | None, attempt: AttemptId) -> dict[str, str]:
        headers: dict[str, str] = {"anthropic-version": VERSION, "x-client-request-id": attempt}
        if key is not None:
            headers["x-api-key"] = key
        return headers

    def encode(self, request: port.ModelRequest) -> dict[str, JsonValue]:
        limit = request.max_output_tokens
        body: dict[str, JsonValue] = {
            "model": request.model,
            "max_tokens": DEFAULT_MAX_TOKENS if limit is None else limit,
            "messages": [_message(group) for group in groups.group(request.turns)],
            "stream": True,
        }
        if request.system.strip():
            body["system"] = request.system
        if request.tools or request.hosted_tools:
            body["tools"] = [*map(_tool, request.tools), *map(dict, request.hosted_tools)]
        elif stubs := groups.stubs(request.turns):
            # Calls in the history want tools in the request, also when none may be called.
            body["tools"] = [_tool(tool) for tool in stubs]
            body["tool_choice"] = {"type": "none"}
        return body

    def reader(self) -> "MessageReader":
        return MessageReader()


def _message(group: groups.Group) -> JsonValue:
    if isinstance(group, AssistantGroup):
        return {"role": "assistant", "content": list(_assistant_content(group))}
    return {"role": "user", "content": list(_user_content(group))}


def _assistant_content(group: AssistantGroup) -> Iterator[JsonValue]:
    for block in group.blocks:
        yield from _block(block)


def _block(block: AssistantBlock) -> Iterator[JsonValue]:
    match block:
        case TextBlock():
            yield {"type": "text", "text": block.text}
        case ReasoningBlock():
            yield from _thinking(block)
        case CallBlock(hosted=True):
            yield from _hosted(block)
        case CallBlock():
            yield {
                "type": "tool_use",
                "id": call_ids.common(block.call_id),
                "name": groups.wire_name(block.name),
                "input": block.input,
            }


def _hosted(call: CallBlock) -> Iterator[JsonValue]:
    """A call that the provider ran, with its result right behind it; without one it is only told."""
    result = {} if call.result is None else call.result.replay
    if not isinstance(result.get("type"), str):
        yield {"type": "text", "text": groups.hosted_note(call)}
        return
    call_id = call_ids.hosted(call.call_id)
    yield {
        "type": "server_tool_use",
        **call.replay,
        "id": call_id,
        "name": groups.wire_name(call.name),
        "input": call.input,
    }
    yield {**result, "tool_use_id": call_id}


def _thinking(block: ReasoningBlock) -> Iterator[JsonValue]:
    """Thinking goes back exactly as it came, or not at all; the API refuses it without words."""
    if isinstance(redacted := block.replay.get("redacted"), str):
        yield {"type": "redacted_thinking", "data": redacted}
    elif isinstance(signature := block.replay.get("signature"), str) and block.text.strip():
        yield {"type": "thinking", "thinking": block.text, "signature": signature}


def _user_content(group: UserGroup) -> Iterator[JsonValue]:
    for result in group.results:
        yield _result(result)
    for words in group.texts:
        yield {"type": "text", "text": words}


def _result(result: ResultTurn) -> JsonValue:
    encoded: dict[str, JsonValue] = {
        "type": "tool_result",
        "tool_use_id": call_ids.common(result.call_id),
        "content": groups.output_of(result),
    }
    if result.failed:
        encoded["is_error"] = True
    return encoded


def _tool(tool: ToolDefinition) -> JsonValue:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": {"type": "object", **tool.parameters},
    }


class MessageReader:
    """Reads the events of one message."""

    def __init__(self) -> None:
        self.is_over = False
        self._counts: dict[str, int] = {}
        self._blocks: dict[int, _TextBlock | _CallBlock] = {}
        self._begun: set[int] = set()
        self._hosted: dict[str, str] = {}
        """The keys of calls that the provider runs, by their id, until their result is told."""
        self._is_identified = False
        self._stop_reason: str | None = None
        self._has_text = False
        self._has_reasoning = False
        self._has_calls = False

    @property
    def usage(self) -> Usage | None:
        return Usage(**self._counts) if self._counts else None

    @property
    def is_complete(self) -> bool:
        """A stop reason is terminal once every block is closed, also if ``message_stop`` was lost."""
        return self.is_over or (self._stop_reason is not None and not self._blocks)

    def read(self, event: sse.Event) -> Iterator[port.Item]:
        if event.name == "error":
            raise wire.Reported(wire.decoded_or_text(event.data))
        if event.name not in _EVENTS or event.data == "[DONE]":
            return
        payload = wire.decoded(event.data)
        kind = payload.get("type") or event.name
        if kind == "error" or payload.get("error"):
            raise wire.Reported(payload)
        yield from self._frame(kind, payload)

    def _frame(self, kind: JsonValue, payload: dict[str, JsonValue]) -> Iterator[port.Item]:
        match kind:
            case "content_block_delta":
                yield from self._delta(payload)
            case "content_block_start":
                yield from self._block_started(payload)
            case "content_block_stop":
                yield from self._block_stopped(_index(payload))
            case "message_start":
                yield from self._started(payload.get("message"))
            case "message_delta":
                self._message_delta(payload)
            case "message_stop":
                self.is_over = self._stop_reason is not None

    def read_whole(self, body: bytes) -> Iterator[port.Item]:
        payload = wire.document(body)
        if payload.get("type") == "error" or payload.get("error"):
            raise wire.Reported(payload)
        if payload.get("type") != "message":
            raise wire.Undecodable("The answer is JSON, and no message.")
        yield from self._started(payload)
        for index, block in enumerate(wire.objects(payload.get("content"))):
            yield from self._block_started({"index": index, "content_block": block})
            yield from self._block_stopped(index)
        self._message_delta({"delta": payload})

    def finish(self) -> Iterator[port.Item]:
        if not self.is_complete:
            raise wire.Incomplete("The answer ended without saying that it is complete.")
        finish = _STOP_REASONS.get(self._stop_reason or "", "other")
        if not self._has_text and not self._has_calls:
            raise wire.nothing(finish, has_reasoning=self._has_reasoning)
        for index in list(self._blocks):
            yield from self._block_stopped(index)
        yield port.Finished(finish, self.usage)

    def _started(self, message: JsonValue) -> Iterator[port.Item]:
        if not isinstance(message, dict):
            return
        self._note_usage(message.get("usage"))
        message_id = message.get("id")
        if isinstance(message_id, str) and message_id and not self._is_identified:
            self._is_identified = True
            yield port.ResponseIdentified(text.clean(message_id))

    def _message_delta(self, payload: dict[str, JsonValue]) -> None:
        self._note_usage(payload.get("usage"))
        delta = payload.get("delta")
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if isinstance(reason, str) and reason:
            self._stop_reason = reason

    def _block_started(self, payload: dict[str, JsonValue]) -> Iterator[port.Item]:
        index = _index(payload)
        started = payload.get("content_block")
        if not isinstance(started, dict):
            return
        yield from self._block_stopped(index)
        self._begun.add(index)
        kind = _string(started.get("type"))
        if kind in _CALL_TYPES:
            call = _CallBlock(index, started)
            self._blocks[index] = call
            self._has_calls = True
            if kind != "tool_use":
                self._hosted[call.call_id] = call.key
            yield port.CallStarted(call.key, call.call_id, call.name, hosted=kind != "tool_use")
        elif kind.endswith("_tool_result"):
            yield from self._result(started)
        elif kind in ("text", "thinking", "redacted_thinking"):
            block = _TextBlock(index, started)
            self._blocks[index] = block
            yield from self._noted(block.begin())

    def _result(self, block: dict[str, JsonValue]) -> Iterator[port.Item]:
        """The result of a call that the provider ran comes as one block of its own."""
        key = self._hosted.pop(text.clean(_string(block.get("tool_use_id"))), None)
        if key is not None:
            output = text.clean(_output_of(block.get("content")))[:LONGEST_OUTPUT]
            yield port.CallResult(key, output, is_error=_is_error(block), replay=block)

    def _delta(self, payload: dict[str, JsonValue]) -> Iterator[port.Item]:
        delta = payload.get("delta")
        if not isinstance(delta, dict):
            return
        index = _index(payload)
        kind = _UNANNOUNCED.get(_string(delta.get("type")))
        if kind is not None and index not in self._begun:
            # A block that no event opened.
            yield from self._block_started({"index": index, "content_block": {"type": kind}})
        block = self._blocks.get(index)
        if block is not None:
            yield from self._noted(block.read(delta))

    def _block_stopped(self, index: int) -> Iterator[port.Item]:
        block = self._blocks.pop(index, None)
        if block is not None:
            yield from block.close()

    def _noted(self, items: Iterator[port.Item]) -> Iterator[port.Item]:
        for item in items:
            self._has_text = self._has_text or isinstance(item, port.TextDelta)
            self._has_reasoning = self._has_reasoning or isinstance(item, port.ReasoningDelta)
            yield item

    def _note_usage(self, found: JsonValue) -> None:
        """Counts are cumulative: the last one of each counts."""
        if not isinstance(found, dict):
            return
        for name, field in _USAGE_FIELDS.items():
            value = wire.count(found.get(field))
            if value is not None:
                self._counts[name] = value


_USAGE_FIELDS: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}


class _TextBlock:
    """A block of text or of thinking."""

    def __init__(self, index: int, started: dict[str, JsonValue]) -> None:
        self._is_text = started.get("type") == "text"
        self._part = OpenPart(f"{'text' if self._is_text else 'reasoning'}:{index}")
        self._started = started
        self._signature = _string(started.get("signature"))
        self._redacted = _string(started.get("data"))

    def begin(self) -> Iterator[port.Item]:
        yield from self._feed(_string(self._started.get("text" if self._is_text else "thinking")))

    def read(self, delta: dict[str, JsonValue]) -> Iterator[port.Item]:
        match delta.get("type"):
            case "text_delta":
                yield from self._feed(_string(delta.get("text")))
            case "thinking_delta":
                yield from self._feed(_string(delta.get("thinking")))
            case "signature_delta":
                self._signature += _string(delta.get("signature"))

    def close(self) -> Iterator[port.Item]:
        if self._redacted and not self._is_text:
            yield port.ReasoningDelta(self._part.key, "")
            yield port.PartClosed(self._part.key, {"redacted": self._redacted})
        elif self._part.has_content:
            yield port.PartClosed(self._part.key, self._replay())

    def _feed(self, fragment: str) -> Iterator[port.Item]:
        piece = self._part.feed(fragment) if fragment else ""
        if piece:
            delta = port.TextDelta if self._is_text else port.ReasoningDelta
            yield delta(self._part.key, piece)

    def _replay(self) -> dict[str, JsonValue]:
        if self._is_text or not self._signature or self._part.has_altered:
            return {}
        return {"signature": self._signature}


class _CallBlock:
    """A block that calls a tool."""

    def __init__(self, index: int, started: dict[str, JsonValue]) -> None:
        self.key = f"call:{index}"
        self.call_id = text.clean(_string(started.get("id"))) or f"toolu_{index}"
        self.name = text.clean(_string(started.get("name")))
        self._scrubber = Scrubber()
        self._given = started.get("input")
        self._replay: dict[str, JsonValue] = {}
        if started.get("type") == "mcp_tool_use":
            self._replay = {"type": "mcp_tool_use", "server_name": _string(started.get("server_name"))}
        self._has_arguments = False

    def read(self, delta: dict[str, JsonValue]) -> Iterator[port.Item]:
        if delta.get("type") == "input_json_delta":
            piece = self._scrubber.feed(_string(delta.get("partial_json")))
            if piece:
                self._has_arguments = True
                yield port.CallDelta(self.key, piece)

    def close(self) -> Iterator[port.Item]:
        """Some servers give the whole input at the start and no fragments."""
        if not self._has_arguments and self._given:
            yield port.CallDelta(self.key, json.dumps(self._given, ensure_ascii=False))
        yield port.PartClosed(self.key, self._replay)


def _is_error(block: dict[str, JsonValue]) -> bool:
    content = block.get("content")
    kind = content.get("type") if isinstance(content, dict) else None
    return block.get("is_error") is True or (isinstance(kind, str) and kind.endswith("_error"))


def _output_of(content: JsonValue) -> str:
    """What a person reads of a result: its words, else titles and addresses, else the JSON as it is."""
    lines = [
        " ".join(filter(None, (_string(piece.get(name)) for name in ("text", "title", "url"))))
        for piece in wire.objects(content)
    ]
    if any(lines):
        return "\n".join(filter(None, lines))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _index(payload: dict[str, JsonValue]) -> int:
    index = payload.get("index")
    return index if isinstance(index, int) else 0


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
