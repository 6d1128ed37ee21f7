"""OpenAI chat completions, as OpenAI and the servers compatible with it speak them."""

import json
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import JsonValue

from schema import text
from schema.attempts import Usage
from schema.ids import AttemptId
from schema.turns import CallBlock, ReasoningBlock, ResultTurn, ToolDefinition
from sessions_app.providers import call_ids, groups, openai_reasoning, port, sse, wire
from sessions_app.providers.call_ids import CallIdRule
from sessions_app.providers.groups import AssistantGroup, UserGroup
from sessions_app.providers.openai_calls import Calls
from sessions_app.providers.parts import OpenPart
from sessions_app.providers.think_tags import ThinkTags

LimitField = Literal["max_tokens", "max_completion_tokens"]

_BETWEEN: Final = "(no content)"

_FINISHES: Final = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_KEEP_ALIVES: Final = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
_NAMELESS: Final = "The model called a tool without saying which. Send the message again."
_FAILED_FINISHES: Final = frozenset({"error", "insufficient_system_resource"})


class ChatCompletions:
    """The wire format of ``POST /chat/completions``."""

    path = "/chat/completions"
    counts_cache_as_input = True

    def __init__(self, *, limit_field: LimitField, is_mistral: bool = False) -> None:
        self._limit_field = limit_field
        self._is_mistral = is_mistral

    def headers(self, *, key: str | None, attempt: AttemptId) -> dict[str, str]:
        headers: dict[str, str] = {"x-client-request-id": attempt}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        return headers

    def encode(self, request: port.ModelRequest) -> dict[str, JsonValue]:
        body: dict[str, JsonValue] = {
            "model": request.model,
            "messages": list(self._messages(request)),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.max_output_tokens is not None:
            body[self._limit_field] = request.max_output_tokens
        return body

    def reader(self) -> "ChatReader":
        return ChatReader()

    def _messages(self, request: port.ModelRequest) -> Iterator[JsonValue]:
        if request.system.strip():
            yield {"role": "system", "content": request.system}
        for group in groups.group(request.turns):
            if isinstance(group, AssistantGroup):
                yield _assistant_message(group, self._call_id)
            else:
                yield from self._user_messages(group)

    def _user_messages(self, group: UserGroup) -> Iterator[JsonValue]:
        for result in group.results:
            yield _result(result, self._call_id)
        if group.results and group.texts and self._is_mistral:
            # Mistral takes no user right after a tool.
            yield {"role": "assistant", "content": _BETWEEN}
        if group.texts:
            yield {"role": "user", "content": "\n\n".join(group.texts)}

    @property
    def _call_id(self) -> CallIdRule:
        return call_ids.nine if self._is_mistral else call_ids.common


def _assistant_message(group: AssistantGroup, call_id: CallIdRule) -> JsonValue:
    message: dict[str, JsonValue] = {"role": "assistant", "content": "\n\n".join(group.texts) or None}
    if group.calls:
        message["tool_calls"] = [_call(call, call_id) for call in group.calls]
        reasoning = "".join(_echoed(group))
        if reasoning:
            message[openai_reasoning.ECHOED_FIELD] = reasoning
    if details := list(_details(group)):
        message[openai_reasoning.DETAILS_FIELD] = details
    return message


def _echoed(group: AssistantGroup) -> Iterator[str]:
    for block in group.blocks:
        if isinstance(block, ReasoningBlock) and block.replay.get("field") == openai_reasoning.ECHOED_FIELD:
            yield block.text


def _details(group: AssistantGroup) -> Iterator[JsonValue]:
    for block in group.blocks:
        if isinstance(block, ReasoningBlock) and isinstance(kept := block.replay.get("details"), list):
            yield from kept


def _call(call: CallBlock, call_id: CallIdRule) -> JsonValue:
    arguments = json.dumps(call.input, ensure_ascii=False, separators=(",", ":"))
    function: JsonValue = {"name": groups.wire_name(call.name), "arguments": arguments}
    return {"id": call_id(call.call_id), "type": "function", "function": function}


def _result(result: ResultTurn, call_id: CallIdRule) -> JsonValue:
    output = groups.output_of(result)
    return {
        "role": "tool",
        "tool_call_id": call_id(result.call_id),
        "content": f"Error: {output}" if result.failed else output,
    }


def _tool(tool: ToolDefinition) -> JsonValue:
    function: JsonValue = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


class ChatReader:
    """Reads ``chat.completion.chunk`` frames, in the dialects of many servers."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.is_over = False
        self._response_id: str | None = None
        self._finishes: dict[int, str | None] = {}
        self._tags = ThinkTags()
        self._text = OpenPart("text")
        self._reasoning: OpenPart | None = None
        self._reasoning_field = ""
        self._reasoning_parts = 0
        self._details: openai_reasoning.Details | None = None
        self._has_reasoned = False
        self._is_usage_stated = False
        self._calls = Calls()

    @property
    def is_complete(self) -> bool:
        return self.is_over or (bool(self._finishes) and all(self._finishes.values()))

    def read(self, event: sse.Event) -> Iterator[port.Item]:
        if event.data.strip() == "[DONE]":
            self.is_over = True
        elif event.name == "error":
            raise wire.Reported(wire.decoded_or_text(event.data))
        elif event.name not in _KEEP_ALIVES:
            yield from self._frame(wire.decoded(event.data))

    def read_whole(self, body: bytes) -> Iterator[port.Item]:
        payload = wire.document(body)
        if not ("choices" in payload or payload.get("error")):
            raise wire.Undecodable("The answer is JSON, and no chat completion.")
        choices: list[JsonValue] = [
            {**choice, "delta": choice.get("message")} for choice in wire.objects(payload.get("choices"))
        ]
        yield from self._frame({**payload, "choices": choices})

    def finish(self) -> list[port.Item]:
        if not self.is_complete:
            raise wire.Incomplete("The answer ended without saying that it is complete.")
        items = list(self._flushed())
        finish = self._finish_name()
        if not self._text.has_content and not self._calls.has_started:
            if self._calls.has_any:
                raise wire.Unusable("bad_response", _NAMELESS)
            raise wire.nothing(finish, has_reasoning=self._has_reasoned)
        if self._text.has_content:
            items.append(port.PartClosed(self._text.key))
        items += self._calls.closed()
        items.append(port.Finished(finish, self.usage))
        return items

    def _frame(self, payload: dict[str, JsonValue]) -> Iterator[port.Item]:
        if payload.get("error"):
            raise wire.Reported(payload)
        if self._response_id is None:
            response_id = payload.get("id")
            if isinstance(response_id, str) and response_id:
                self._response_id = text.clean(response_id)
                yield port.ResponseIdentified(self._response_id)
        self._note_usage(payload)
        for choice in wire.objects(payload.get("choices")):
            yield from self._choice(choice)

    def _choice(self, choice: dict[str, JsonValue]) -> Iterator[port.Item]:
        stated = choice.get("index")
        index = stated if isinstance(stated, int) else 0
        self._finishes.setdefault(index, None)
        delta = choice.get("delta")
        if delta is None and not self._text.has_content:
            # Some servers call it a message; where one comes at the end, it says all of it again.
            delta = choice.get("message")
        if isinstance(delta, dict) and index == next(iter(self._finishes)):
            yield from self._delta(delta)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            if finish in _FAILED_FINISHES:
                message = f"The provider ended its answer with {finish!r}."
                raise wire.Reported({"error": {"message": message, "type": finish}})
            self._finishes[index] = finish

    def _delta(self, delta: dict[str, JsonValue]) -> Iterator[port.Item]:
        yield from self._reasoning_fields(delta)
        for content in (delta.get("content"), delta.get("refusal")):
            if isinstance(content, str) and content:
                yield from self._content(content)
            elif isinstance(content, list):
                for piece in wire.objects(content):
                    yield from self._piece(piece)
        calls = delta.get("tool_calls") or _legacy_call(delta)
        if calls:
            yield from self._reasoning_closed()
            yield from self._calls.read(wire.objects(calls))

    def _reasoning_fields(self, delta: dict[str, JsonValue]) -> Iterator[port.Item]:
        """A server that tells its reasoning in two fields says the same in both."""
        field, words = openai_reasoning.plain(delta)
        details = openai_reasoning.details_of(delta)
        if not (words or details):
            return
        self._reasoning_field = field or self._reasoning_field
        yield from self._reasoned(words or openai_reasoning.told(details))
        if details:
            self._details = self._details or openai_reasoning.Details()
            self._details.add(details)

    def _piece(self, piece: dict[str, JsonValue]) -> Iterator[port.Item]:
        """Mistral's content: a list of text and of thinking, which is a list again."""
        value = piece.get("text")
        if isinstance(value, str) and value:
            yield from self._content(value)
        for thought in wire.objects(piece.get("thinking")):
            value = thought.get("text")
            if isinstance(value, str) and value:
                yield from self._reasoned(value)

    def _content(self, fragment: str) -> Iterator[port.Item]:
        for is_thought, piece in self._tags.feed(fragment):
            yield from self._reasoned(piece) if is_thought else self._said(self._trimmed(piece))

    def _trimmed(self, piece: str) -> str:
        """The lines that only set an answer off from the reasoning before it are none of its own."""
        return piece.lstrip() if self._tags.has_opened and not self._text.has_content else piece

    def _said(self, fragment: str) -> Iterator[port.Item]:
        piece = self._text.feed(fragment)
        if piece:
            yield from self._reasoning_closed()
            yield port.TextDelta(self._text.key, piece)

    def _reasoned(self, fragment: str) -> Iterator[port.Item]:
        if self._reasoning is None:
            self._reasoning = OpenPart(f"reasoning:{self._reasoning_parts}")
            self._reasoning_parts += 1
        piece = self._reasoning.feed(fragment)
        if piece:
            self._has_reasoned = True
            yield port.ReasoningDelta(self._reasoning.key, piece)

    def _reasoning_closed(self) -> Iterator[port.Item]:
        part, self._reasoning = self._reasoning, None
        if part is None:
            return
        replay = self._reasoning_replay(part)
        if replay and not part.has_content:
            # Withheld words: what goes back is all there is of it.
            yield port.ReasoningDelta(part.key, "")
        if replay or part.has_content:
            yield port.PartClosed(part.key, replay)

    def _reasoning_replay(self, part: OpenPart) -> dict[str, JsonValue]:
        details, self._details = self._details, None
        if details is not None:
            return {"field": openai_reasoning.DETAILS_FIELD, "details": details.whole()}
        echoed = self._reasoning_field == openai_reasoning.ECHOED_FIELD
        return {"field": openai_reasoning.ECHOED_FIELD} if echoed and part.has_content else {}

    def _flushed(self) -> Iterator[port.Item]:
        for is_thought, piece in self._tags.close():
            yield from self._reasoned(piece) if is_thought else self._said(self._trimmed(piece))
        yield from self._reasoning_closed()

    def _finish_name(self) -> str:
        stated = next(iter(self._finishes.values()), None)
        if not stated:
            return "missing"
        finish = _FINISHES.get(stated.lower(), "other")
        if finish in ("stop", "other") and self._calls.has_started:
            return "tool_calls"
        if finish == "tool_calls" and not self._calls.has_started:
            return "stop"
        return finish

    def _note_usage(self, payload: dict[str, JsonValue]) -> None:
        """Servers report once, with every frame, or both: the last report counts, they never add up."""
        found = payload.get("usage")
        if found is None and (groq := payload.get("x_groq")):
            found = groq.get("usage") if isinstance(groq, dict) else None
        if isinstance(found, dict) and (usage := _usage(found)) is not None:
            self.usage, self._is_usage_stated = usage, True
        elif not self._is_usage_stated and isinstance(timings := payload.get("timings"), dict):
            self.usage = _usage_of_timings(timings) or self.usage


def _legacy_call(delta: dict[str, JsonValue]) -> JsonValue:
    function = delta.get("function_call")
    return [{"index": 0, "function": function}] if isinstance(function, dict) else None


def _usage_of_timings(timings: dict[str, JsonValue]) -> Usage | None:
    """llama.cpp counts what it read anew and what it had in its cache apart."""
    read, cached = wire.count(timings.get("prompt_n")), wire.count(timings.get("cache_n"))
    usage = Usage(
        input_tokens=None if read is None else read + (cached or 0),
        output_tokens=wire.count(timings.get("predicted_n")),
        cache_read_tokens=cached,
    )
    return usage if usage.to_json() else None


def _usage(found: dict[str, JsonValue]) -> Usage | None:
    given = found.get("prompt_tokens_details")
    made = found.get("completion_tokens_details")
    cached = wire.count(given.get("cached_tokens")) if isinstance(given, dict) else None
    usage = Usage(
        input_tokens=wire.count(found.get("prompt_tokens")),
        output_tokens=wire.count(found.get("completion_tokens")),
        reasoning_tokens=wire.count(made.get("reasoning_tokens")) if isinstance(made, dict) else None,
        cache_read_tokens=wire.count(found.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cost=wire.amount(found.get("cost")),
    )
    return usage if usage.to_json() else None
