"""The OpenAI Responses API, as OpenAI and the servers compatible with it speak it."""

import json
import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from schema import text
from schema.attempts import Usage
from schema.ids import AttemptId
from schema.turns import AssistantBlock, CallBlock, ReasoningBlock, ResultTurn, ToolDefinition
from sessions_app.providers import call_ids, groups, port, responses_items, sse, wire
from sessions_app.providers.groups import AssistantGroup, UserGroup

_ENCRYPTED: Final = "reasoning.encrypted_content"
_NEVER_REASONS: Final = re.compile(r"(?:gpt-3|gpt-4|chatgpt-4)")
"""Models that refuse to be asked for their reasoning."""

_INCOMPLETE: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_RUNNING: Final = frozenset({"queued", "in_progress"})
_TEXT_DELTAS: Final = frozenset(
    {
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
    }
)
_WHOLE: Final = {
    "response.output_text.done": "text",
    "response.refusal.done": "refusal",
    "response.reasoning_summary_text.done": "text",
    "response.reasoning_text.done": "text",
    "response.function_call_arguments.done": "arguments",
}
"""Each tells again what its deltas told; servers without deltas tell it only here."""


class Responses:
    """The wire format of ``POST /responses``.

    In background mode the provider keeps the response and goes on without us, so that it can be asked for
    it later. Otherwise nothing is kept there, and reasoning goes back and forth encrypted.
    """

    path = "/responses"
    counts_cache_as_input = True

    def __init__(self, *, is_background: bool) -> None:
        self._is_background = is_background

    def headers(self, *, key: str | None, attempt: AttemptId) -> dict[str, str]:
        headers: dict[str, str] = {"x-client-request-id": attempt}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        return headers

    def encode(self, request: port.ModelRequest) -> dict[str, JsonValue]:
        body: dict[str, JsonValue] = {
            "model": request.model,
            "input": list(_input(request)),
            "stream": True,
            "store": self._is_background,
        }
        if self._is_background:
            body["background"] = True
        if not _NEVER_REASONS.match(request.model):
            body["include"] = [_ENCRYPTED]
        if request.system.strip():
            body["instructions"] = request.system
        if request.tools or request.hosted_tools:
            body["tools"] = [*map(_tool, request.tools), *map(dict, request.hosted_tools)]
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        return body

    def reader(self) -> "ResponseReader":
        return ResponseReader()


def _input(request: port.ModelRequest) -> Iterator[JsonValue]:
    for group in groups.group(request.turns, calls_last=False):
        if isinstance(group, AssistantGroup):
            yield from _assistant_items(group)
        else:
            yield from _user_items(group)


def _user_items(group: UserGroup) -> Iterator[JsonValue]:
    for result in group.results:
        yield _result(result)
    if group.texts:
        yield {"role": "user", "content": "\n\n".join(group.texts)}


def _result(result: ResultTurn) -> JsonValue:
    output = groups.output_of(result)
    return {
        "type": "function_call_output",
        "call_id": call_ids.common(result.call_id),
        "output": f"Error: {output}" if result.failed else output,
    }


def _assistant_items(group: AssistantGroup) -> Iterator[JsonValue]:
    """Items in their order. An item goes back under its id only behind the reasoning that led to it."""
    thoughts: set[str] = set()
    for block in group.blocks:
        if isinstance(block, ReasoningBlock):
            item = block.replay.get("item")
            if isinstance(item, dict) and isinstance(thought := item.get("id"), str):
                thoughts.add(thought)
                yield item
        else:
            yield _item(block, thoughts)


def _item(block: AssistantBlock, thoughts: set[str]) -> JsonValue:
    match block:
        case CallBlock(hosted=True):
            return _hosted(block, thoughts)
        case CallBlock():
            return _call(block, thoughts)
        case _:
            return _message(block.text, _kept(block.replay, thoughts))


def _kept(replay: dict[str, JsonValue], thoughts: set[str]) -> dict[str, JsonValue]:
    """What was kept of an item; without its id when its reasoning stays behind, which the API refuses."""
    after = replay.get("after")
    is_whole = after is None or after in thoughts
    return {name: value for name, value in replay.items() if name == "phase" or (is_whole and name == "id")}


def _message(words: str, kept: dict[str, JsonValue]) -> JsonValue:
    message: dict[str, JsonValue] = {"type": "message", "role": "assistant", **kept}
    if "id" not in kept:
        return {**message, "content": words}
    content: JsonValue = [{"type": "output_text", "text": words, "annotations": []}]
    return {**message, "status": "completed", "content": content}


def _call(call: CallBlock, thoughts: set[str]) -> JsonValue:
    return {
        "type": "function_call",
        "call_id": call_ids.common(call.call_id),
        "name": groups.wire_name(call.name),
        "arguments": json.dumps(call.input, ensure_ascii=False, separators=(",", ":")),
        **_kept(call.replay, thoughts),
    }


def _hosted(call: CallBlock, thoughts: set[str]) -> JsonValue:
    """A call that the provider ran, as it told it; in words where its reasoning does not go along."""
    result = {} if call.result is None else call.result.replay
    item = result.get("item")
    after = result.get("after")
    if isinstance(item, dict) and isinstance(item.get("type"), str) and (after is None or after in thoughts):
        return item
    return _message(groups.hosted_note(call), {})


def _tool(tool: ToolDefinition) -> JsonValue:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


class ResponseReader:
    """Reads the events of one response, or the response as a whole once it has ended."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.is_over = False
        self.sequence: int | None = None
        """The number of the newest event: from behind it the stream can be asked for again."""
        self._is_identified = False
        self._finish = "other"
        self._output = responses_items.Output()

    @property
    def is_complete(self) -> bool:
        return self.is_over

    def read(self, event: sse.Event) -> Iterator[port.Item]:
        if event.data.strip() == "[DONE]":
            return
        if event.name == "error":
            raise wire.Reported(wire.decoded_or_text(event.data))
        if event.name and not event.name.startswith("response.") and event.name != "message":
            return
        payload = wire.decoded(event.data)
        kind = payload.get("type") or event.name
        if kind == "error" or payload.get("error"):
            raise wire.Reported(payload)
        number = wire.count(payload.get("sequence_number"))
        self.sequence = self.sequence if number is None else number
        yield from self._frame(kind, payload)

    def _frame(self, kind: JsonValue, payload: dict[str, JsonValue]) -> Iterator[port.Item]:
        match kind:
            case str() if kind in _TEXT_DELTAS:
                yield from self._output.grew(kind, payload)
            case str() if kind in _WHOLE:
                yield from self._output.told(kind, payload | {"delta": payload.get(_WHOLE[kind])})
            case "response.output_item.added":
                yield from self._output.added(payload)
            case "response.output_item.done":
                yield from self._output.done(payload)
            case "response.created" | "response.queued" | "response.in_progress":
                yield from self._identified(payload.get("response"))
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                response = payload.get("response")
                told = response if isinstance(response, dict) else {}
                yield from self._ended({"status": kind.partition(".")[2], **told})

    def read_whole(self, body: bytes) -> Iterator[port.Item]:
        """The rest of the response, whatever its events told before. One that still runs ends incomplete."""
        response = wire.document(body)
        status = response.get("status")
        if not isinstance(status, str):
            if response.get("error"):
                raise wire.Reported(response)
            raise wire.Undecodable("The answer is JSON, and no response.")
        yield from self._identified(response)
        if status not in _RUNNING:
            yield from self._ended(response)

    def finish(self) -> Iterator[port.Item]:
        if not self.is_complete:
            raise wire.Incomplete("The answer ended without saying that it is complete.")
        if not self._output.has_any:
            raise wire.nothing(self._finish, has_reasoning=self._output.has_reasoning)
        yield from self._output.closed()
        yield port.Finished(self._finish, self.usage)

    def _identified(self, response: JsonValue) -> Iterator[port.Item]:
        response_id = response.get("id") if isinstance(response, dict) else None
        if isinstance(response_id, str) and response_id and not self._is_identified:
            self._is_identified = True
            yield port.ResponseIdentified(text.clean(response_id))

    def _ended(self, response: dict[str, JsonValue]) -> Iterator[port.Item]:
        yield from self._identified(response)
        self._note_usage(response.get("usage"))
        status = response.get("status")
        if status not in ("completed", "incomplete"):
            raise wire.Reported(_failure(response))
        yield from self._output.rest(wire.objects(response.get("output")))
        self._finish = self._finish_name(response)
        self.is_over = True

    def _finish_name(self, response: dict[str, JsonValue]) -> str:
        if response.get("status") == "completed":
            return "tool_calls" if self._output.has_calls else "stop"
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return _INCOMPLETE.get(reason, "other") if isinstance(reason, str) else "other"

    def _note_usage(self, found: JsonValue) -> None:
        if not isinstance(found, dict):
            return
        usage = Usage(
            input_tokens=wire.count(found.get("input_tokens")),
            output_tokens=wire.count(found.get("output_tokens")),
            reasoning_tokens=_detail(found.get("output_tokens_details"), "reasoning_tokens"),
            cache_read_tokens=_detail(found.get("input_tokens_details"), "cached_tokens"),
            cost=wire.amount(found.get("cost")),
        )
        if usage.to_json():
            self.usage = usage


def _detail(details: JsonValue, name: str) -> int | None:
    return wire.count(details.get(name)) if isinstance(details, dict) else None


def _failure(response: dict[str, JsonValue]) -> JsonValue:
    if isinstance(response.get("error"), dict | str) and response["error"]:
        return response
    return {"error": {"message": f"The provider ended its answer with {response.get('status')!r}."}}
