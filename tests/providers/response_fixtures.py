"""Answers of the Responses API, event by event, and what they come to."""

import json
from typing import Any, Final

from schema.attempts import Usage
from tests.providers.asking import response_reader
from tests.providers.fixtures import Answer

COUNTS: Final = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
}
COUNTED: Final = Usage(input_tokens=12, output_tokens=5, reasoning_tokens=2, cache_read_tokens=4)


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields, ensure_ascii=False)}\n\n".encode()


def said(kind: str, delta: str, index: int = 0, **fields: Any) -> bytes:
    return event(f"response.{kind}.delta", output_index=index, item_id=f"it_{index}", delta=delta, **fields)


def added(item: Any, index: int = 0) -> bytes:
    return event("response.output_item.added", output_index=index, item=item)


def done(item: Any, index: int = 0) -> bytes:
    return event("response.output_item.done", output_index=index, item=item)


def ended(*output: Any, status: str = "completed", **fields: Any) -> bytes:
    response = {"id": "resp_1", "status": status, "output": list(output), "usage": COUNTS} | fields
    return event(f"response.{status}", response=response)


def message(words: str, index: int = 0, **fields: Any) -> Any:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {
        "type": "message",
        "id": f"it_{index}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    } | fields


def thought(words: str = "A plan.", index: int = 0, **fields: Any) -> Any:
    summary = [{"type": "summary_text", "text": words}] if words else []
    return {"type": "reasoning", "id": f"it_{index}", "summary": summary, "encrypted_content": "x"} | fields


def call(arguments: str, index: int = 0, **fields: Any) -> Any:
    return {
        "type": "function_call",
        "id": f"it_{index}",
        "call_id": f"call_{index}",
        "name": "add",
        "arguments": arguments,
        "status": "completed",
    } | fields


SEARCH: Final = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather"},
}
CREATED: Final = event("response.created", sequence_number=0, response={"id": "resp_1", "status": "queued"})
OPENED: Final = added({"type": "message", "id": "it_0", "role": "assistant", "content": []})


def response(
    name: str, *frames: bytes, usage: Usage | None = COUNTED, finish: str | None = "stop", **expected: Any
) -> Answer:
    return Answer(name=name, frames=frames, usage=usage, finish=finish, reader=response_reader, **expected)


def broken(name: str, *frames: bytes, outcome: str, usage: Usage | None = None, **expected: Any) -> Answer:
    return response(name, *frames, outcome=outcome, usage=usage, finish=None, **expected)


RESPONSES: Final = (
    response(
        "text",
        CREATED,
        OPENED,
        said("output_text", "Hel"),
        said("output_text", "lo"),
        done(message("Hello")),
        ended(message("Hello")),
        text="Hello",
    ),
    response("only the end tells it", CREATED, ended(message("Hello")), text="Hello"),
    response("no deltas", CREATED, OPENED, done(message("Hello")), ended(), text="Hello"),
    response(
        "texts as a whole, no deltas",
        CREATED,
        event("response.reasoning_summary_text.done", output_index=0, item_id="it_0", text="A plan."),
        event("response.output_text.done", output_index=1, item_id="it_1", text="Hello"),
        event("response.function_call_arguments.done", output_index=2, item_id="it_2", arguments="{}"),
        done(call("{}", 2), 2),
        ended(),
        text="Hello",
        reasoning="A plan.",
        calls=(("call_2", "add", "{}"),),
        finish="tool_calls",
    ),
    response(
        "texts as a whole after their deltas",
        CREATED,
        OPENED,
        said("output_text", "Hel"),
        said("output_text", "lo"),
        event("response.output_text.done", output_index=0, item_id="it_0", text="Hello"),
        done(message("Hello")),
        event("response.output_text.done", output_index=0, item_id="it_0", text="Hello"),
        ended(message("Hello")),
        text="Hello",
    ),
    response(
        "the end tells the rest",
        CREATED,
        OPENED,
        said("output_text", "Hel"),
        ended(message("Hello")),
        text="Hello",
    ),
    response(
        "as llama.cpp writes it: no numbers, no indexes",
        event("response.created", response={"id": "resp_1", "status": "in_progress"}),
        event("response.output_item.added", item={"type": "message", "id": "m", "content": []}),
        event("response.output_text.delta", item_id="m", delta="Hi"),
        event("response.output_item.done", item=message("Hi", id="m")),
        ended(message("Hi", id="m")),
        text="Hi",
    ),
    response(
        "deltas of an item that nobody opened",
        CREATED,
        event("response.output_text.delta", delta="H"),
        event("response.output_text.delta", delta="i"),
        ended(),
        text="Hi",
    ),
    response(
        "a refusal is text",
        CREATED,
        OPENED,
        said("refusal", "No."),
        done({"type": "message", "id": "it_0", "content": [{"type": "refusal", "refusal": "No."}]}),
        ended(),
        text="No.",
    ),
    response(
        "reasoning and text",
        CREATED,
        added({"type": "reasoning", "id": "it_0", "summary": []}),
        said("reasoning_summary_text", "A plan.", summary_index=0),
        said("reasoning_summary_text", "More.", summary_index=1),
        done(
            thought(summary=[{"type": "summary_text", "text": words} for words in ("A plan.", "More.")]),
        ),
        added({"type": "message", "id": "it_1", "content": []}, 1),
        said("output_text", "Hi", 1),
        done(message("Hi", 1), 1),
        ended(),
        text="Hi",
        reasoning="A plan.\n\nMore.",
    ),
    response(
        "parallel calls",
        CREATED,
        added(call(""), 0),
        said("function_call_arguments", '{"a":'),
        added(call("", 1), 1),
        said("function_call_arguments", '{"a":2}', 1),
        said("function_call_arguments", "1}"),
        done(call('{"a":1}')),
        done(call('{"a":2}', 1), 1),
        ended(),
        finish="tool_calls",
        calls=(("call_0", "add", '{"a":1}'), ("call_1", "add", '{"a":2}')),
    ),
    response(
        "a call that only its end tells",
        CREATED,
        done(call('{"a":1}')),
        ended(),
        finish="tool_calls",
        calls=(("call_0", "add", '{"a":1}'),),
    ),
    response(
        "a hosted call",
        CREATED,
        added({"type": "web_search_call", "id": "ws_1", "status": "in_progress"}),
        event("response.web_search_call.searching", output_index=0, item_id="ws_1"),
        done(SEARCH),
        added({"type": "message", "id": "it_1", "content": []}, 1),
        said("output_text", "Sunny.", 1),
        done(message("Sunny.", 1), 1),
        ended(),
        text="Sunny.",
        calls=(("ws_1", "web_search", '{"action": {"type": "search", "query": "weather"}}'),),
    ),
    response(
        "unknown events and items are skipped",
        CREATED,
        event("keepalive", sequence_number=1),
        b"event: note\ndata: no json\n\n",
        event("response.surprise", x=1),
        added({"type": "surprise", "id": "s"}, 3),
        done({"type": "surprise", "id": "s"}, 3),
        OPENED,
        said("output_text", "Hi"),
        done(message("Hi")),
        ended(),
        b"data: [DONE]\n\n",
        text="Hi",
    ),
    response(
        "cut by the limit",
        CREATED,
        OPENED,
        said("output_text", "Hi"),
        ended(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        finish="length",
        text="Hi",
    ),
    response(
        "cut by the filter",
        CREATED,
        OPENED,
        said("output_text", "Hi"),
        ended(status="incomplete", incomplete_details={"reason": "content_filter"}),
        finish="content_filter",
        text="Hi",
    ),
    response(
        "a whole document",
        json.dumps(
            {"id": "resp_1", "status": "completed", "output": [message("Hi")], "usage": COUNTS}
        ).encode(),
        text="Hi",
    ),
    broken("nothing came", CREATED, ended(), outcome="failed", reason="empty", usage=COUNTED),
    broken(
        "withheld",
        CREATED,
        ended(status="incomplete", incomplete_details={"reason": "content_filter"}),
        outcome="failed",
        reason="content_filter",
        usage=COUNTED,
    ),
    broken(
        "failed after output",
        CREATED,
        OPENED,
        said("output_text", "Hi"),
        ended(status="failed", error={"code": "server_error", "message": "oops"}),
        outcome="failed",
        reason="provider_error",
        usage=COUNTED,
        text="Hi",
    ),
    broken(
        "refused for its rate before output",
        CREATED,
        ended(status="failed", usage=None, error={"code": "rate_limit_exceeded", "message": "slow"}),
        outcome="rejected",
        reason="rate_limit",
    ),
    broken(
        "cancelled",
        CREATED,
        ended(status="cancelled", usage=None),
        outcome="failed",
        reason="provider_error",
    ),
    broken(
        "an error event",
        CREATED,
        event("error", code="server_error", message="oops", sequence_number=5),
        outcome="failed",
        reason="provider_error",
    ),
    broken(
        "a document that still runs",
        json.dumps({"id": "resp_1", "status": "queued", "output": []}).encode(),
        outcome="partial",
        reason="cut",
    ),
    broken("no response at all", b'{"object": "list"}', outcome="partial", reason="bad_response"),
)
