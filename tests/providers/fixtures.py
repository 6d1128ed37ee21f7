"""Answers as real servers of many products gave them, frame by frame, and what they come to.

The ids W.. name the shapes in the order in which they were collected; ids and texts are shortened.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from schema.attempts import Usage
from sessions_app.providers import wire
from tests.providers.asking import chat_reader, message_reader


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer and what it comes to; empty fields stand for nothing of the kind."""

    name: str
    frames: tuple[bytes, ...]
    outcome: str = "completed"
    reason: str | None = None
    finish: str | None = "stop"
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    usage: Usage | None = None
    reader: Callable[[], wire.Reader] = chat_reader

    def __str__(self) -> str:
        return self.name


def frame(payload: Any) -> bytes:
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"data: {data}\n\n".encode()


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return frame({"id": "c", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def call_delta(*entries: dict[str, Any], finish: str | None = None) -> bytes:
    return delta(finish, tool_calls=list(entries))


def entry(
    name: str | None = None, arguments: Any = None, *, call_id: str | None = None, index: int | None = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = {"id": call_id, "index": index, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


STOP: Final = delta("stop")
DONE: Final = frame("[DONE]")
USAGE: Final = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
COUNTED: Final = Usage(input_tokens=12, output_tokens=5)


def chat(name: str, *frames: bytes, **expected: Any) -> Answer:
    return Answer(name=name, frames=frames, **expected)


def failed(name: str, *frames: bytes, outcome: str = "failed", **expected: Any) -> Answer:
    return Answer(name=name, frames=frames, outcome=outcome, finish=None, **expected)


CHAT: Final = (
    chat("plain", delta(role="assistant", content=""), delta(content="Hi"), STOP, DONE, text="Hi"),
    # Framing
    chat("W01 comment", b": OPENROUTER PROCESSING\n\n", delta(content="Hi"), STOP, DONE, text="Hi"),
    chat("W02 comment in data", b"data: : OPENROUTER PROCESSING\n\n", delta(content="Hi"), STOP, text="Hi"),
    chat("W04 comment after id", b"id: 7\n" + delta(content="Hi"), b": ping\n\n", STOP, DONE, text="Hi"),
    chat("W05 empty data", b"data: \n\n", delta(content="Hi"), STOP, DONE, text="Hi"),
    chat(
        "W07 no space, CRLF, two data lines, BOM, no space before DONE",
        b"\xef\xbb\xbf" + delta(content="Hi").replace(b"data: ", b"data:").replace(b"\n", b"\r\n"),
        b'data: {"choices":\r\ndata: [{"delta":{},"finish_reason":"stop"}]}\r\n\r\n',
        b"data:[DONE]\r\n\r\n",
        text="Hi",
    ),
    chat("W09 characters of many bytes", delta(content="🌍 мьн"), delta(content="é"), STOP, text="🌍 мьнé"),
    failed(
        "W09 bytes that are no text",
        delta(content="Hi"),
        b"data: \xf0\x9f\n\n",
        outcome="partial",
        reason="bad_response",
        text="Hi",
    ),
    chat(
        "W11 NUL and half a character",
        delta(content="a\x00b"),
        frame(r'{"choices":[{"delta":{"content":"\ud83c"}}]}'),
        frame(r'{"choices":[{"delta":{"content":"\udf0d"}}]}'),
        STOP,
        text="ab🌍",
    ),
    chat("ping event that is no JSON", b"event: ping\ndata: alive\n\n", delta(content="Hi"), STOP, text="Hi"),
    chat(
        "W08 a frame in two pieces",
        b'data: {"choices":[{"delta":{"con',
        b'tent":"Hi"}}]}\n\n',
        STOP,
        text="Hi",
    ),
    # End of stream
    failed("W12 content and end", delta(content="Hello"), outcome="partial", reason="cut", text="Hello"),
    chat("W14 DONE without a finish", delta(content="Hi"), DONE, text="Hi", finish="missing"),
    chat(
        "W15 empty choices, then DONE",
        delta(content="Hi"),
        frame({"choices": []}),
        DONE,
        text="Hi",
        finish="missing",
    ),
    chat("W16 finish without DONE", delta(content="Hi"), STOP, text="Hi"),
    failed("finish_reason is empty", delta("", content="Hi"), outcome="partial", reason="cut", text="Hi"),
    failed("W19 reasoning only", delta(reasoning_content="hm"), STOP, DONE, reason="empty", reasoning="hm"),
    failed("W20 nothing", delta(role="assistant", content=""), STOP, DONE, reason="empty"),
    failed("only DONE", DONE, reason="empty"),
    failed("blanks only", delta(content="\n "), STOP, DONE, reason="empty"),
    failed("nothing, for length", delta("length", content=""), DONE, reason="empty"),
    failed("nothing, filtered", delta("content_filter"), DONE, reason="content_filter"),
    failed("no event at all", b": hello\n\n", outcome="partial", reason="cut"),
    failed("a page", b"<html>Bad gateway</html>\n\n", outcome="partial", reason="cut"),
    chat("a bad frame after the finish", delta(content="Hi"), STOP, frame("{oops"), text="Hi"),
    chat(
        "an error after the finish", delta(content="Hi"), STOP, frame({"error": {"message": "x"}}), text="Hi"
    ),
    chat("an empty finish after the finish", delta(content="Hi"), STOP, delta(""), text="Hi"),
    chat("length", delta(content="Hi"), delta("length"), DONE, text="Hi", finish="length"),
    chat(
        "filtered in the middle",
        delta(content="Hi"),
        delta("content_filter"),
        text="Hi",
        finish="content_filter",
    ),
    chat("unheard of finish", delta(content="Hi"), delta("surprise"), text="Hi", finish="other"),
    failed(
        "two choices, one finished",
        frame(
            {
                "choices": [
                    {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"},
                    {"index": 1, "delta": {"content": "b"}},
                ]
            }
        ),
        outcome="partial",
        reason="cut",
        text="a",
    ),
    chat(
        "two choices, both finished",
        frame(
            {
                "choices": [
                    {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"},
                    {"index": 1, "delta": {"content": "b"}, "finish_reason": "length"},
                ]
            }
        ),
        text="a",
    ),
    # Choices, usage, nulls
    chat(
        "W22a usage apart",
        delta(content="Hi"),
        STOP,
        frame({"choices": [], "usage": USAGE}),
        DONE,
        text="Hi",
        usage=COUNTED,
    ),
    chat(
        "W22b usage without choices",
        delta(content="Hi"),
        STOP,
        frame({"id": "c", "usage": USAGE}),
        text="Hi",
        usage=COUNTED,
    ),
    chat(
        "W22d usage with content",
        frame(
            {"choices": [{"index": 0, "delta": {"content": "."}, "finish_reason": "stop"}], "usage": USAGE}
        ),
        text=".",
        usage=COUNTED,
    ),
    chat(
        "usage with every frame",
        frame(
            {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 12, "completion_tokens": 1}}
        ),
        frame({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": USAGE}),
        text="a",
        usage=COUNTED,
    ),
    chat(
        "usage of Groq",
        delta(content="Hi"),
        frame({"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": USAGE}}),
        text="Hi",
        usage=COUNTED,
    ),
    chat(
        "usage in detail",
        delta(content="Hi"),
        STOP,
        frame(
            {
                "usage": USAGE
                | {
                    "prompt_tokens_details": {"cached_tokens": 8},
                    "completion_tokens_details": {"reasoning_tokens": 3},
                }
            }
        ),
        text="Hi",
        usage=Usage(input_tokens=12, output_tokens=5, cache_read_tokens=8, reasoning_tokens=3),
    ),
    chat(
        "timings of llama.cpp, with every frame",
        frame({"choices": [{"delta": {"content": "Hi"}}], "timings": {"prompt_n": 9, "predicted_n": 1}}),
        frame(
            {
                "choices": [{"delta": {}, "finish_reason": "stop"}],
                "timings": {"prompt_n": 4, "cache_n": 8, "predicted_n": 5, "prompt_ms": 1.5},
            }
        ),
        text="Hi",
        usage=Usage(input_tokens=12, output_tokens=5, cache_read_tokens=8),
    ),
    chat(
        "usage counts, not timings",
        delta(content="Hi"),
        STOP,
        frame({"choices": [], "usage": USAGE, "timings": {"prompt_n": 1}}),
        frame({"choices": [], "timings": {"prompt_n": 2}}),
        text="Hi",
        usage=COUNTED,
    ),
    chat(
        "usage of null",
        delta(content="Hi"),
        frame({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": None}),
        text="Hi",
    ),
    chat(
        "usage that is none",
        delta(content="Hi"),
        STOP,
        frame({"usage": {"prompt_tokens": "many", "completion_tokens": -1}}),
        text="Hi",
    ),
    chat("W23a choices null", frame({"id": "c", "choices": None}), delta(content="Hi"), STOP, text="Hi"),
    chat(
        "W23c no delta",
        delta(content="Hi"),
        frame({"choices": [{"index": 0, "finish_reason": None}]}),
        STOP,
        text="Hi",
    ),
    chat(
        "a message where others have a delta",
        frame({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}]}),
        frame({"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "stop"}]}),
        text="Hi",
    ),
    chat(
        "a message at the end that says it all again",
        delta(content="Hi"),
        frame({"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}),
        text="Hi",
    ),
    chat("W23d null tool calls", delta(content="Hi", tool_calls=None), STOP, text="Hi"),
    chat("null content", delta(role="assistant", content=None), delta(content="Hi"), STOP, text="Hi"),
    chat(
        "Azure's filters",
        frame({"id": "", "model": "", "choices": [], "prompt_filter_results": []}),
        delta(content="Hi"),
        STOP,
        frame(
            {
                "id": "",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": None,
                        "content_filter_results": {},
                        "content_filter_offsets": {},
                    }
                ],
            }
        ),
        DONE,
        text="Hi",
    ),
    chat(
        "error of null",
        frame({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}], "error": None}),
        text="Hi",
    ),
    chat("a refusal is text", delta(refusal="I cannot."), STOP, text="I cannot."),
    # Tool calls
    chat(
        "whole, by OpenAI",
        call_delta(entry("f", "", call_id="x", index=0)),
        call_delta(entry(None, '{"a":', index=0)),
        call_delta(entry(None, "1}", index=0)),
        delta("tool_calls"),
        DONE,
        calls=(("x", "f", '{"a":1}'),),
        finish="tool_calls",
    ),
    chat(
        "two, by index, interleaved",
        call_delta(entry("f", "", call_id="x", index=0), entry("g", "", call_id="y", index=1)),
        call_delta(entry(None, "{}", index=1)),
        call_delta(entry(None, '{"a":1}', index=0)),
        delta("tool_calls"),
        calls=(("x", "f", '{"a":1}'), ("y", "g", "{}")),
        finish="tool_calls",
    ),
    chat(
        "W24 two in the arguments of one",
        call_delta(entry("f", '{"d":"06-11"}{"d":"06-12"}', call_id="x")),
        delta("tool_calls"),
        calls=(("x", "f", '{"d":"06-11"}{"d":"06-12"}'),),
        finish="tool_calls",
    ),
    chat(
        "W25a no index, whole",
        call_delta(entry("list", '{"t":"all"}', call_id="call_1")),
        delta("tool_calls"),
        calls=(("call_1", "list", '{"t":"all"}'),),
        finish="tool_calls",
    ),
    chat(
        "W25b no index, two calls",
        call_delta(entry("weather", "", call_id="a")),
        call_delta(entry(None, '{"c":1}')),
        call_delta(entry("time", "", call_id="b")),
        call_delta(entry(None, '{"z":2}')),
        delta("tool_calls"),
        calls=(("a", "weather", '{"c":1}'), ("b", "time", '{"z":2}')),
        finish="tool_calls",
    ),
    chat(
        "W26a arguments begin with the name",
        call_delta(entry("calc", '{"', call_id="x", index=0)),
        call_delta(entry(None, 'a":1}', index=0)),
        delta("tool_calls"),
        calls=(("x", "calc", '{"a":1}'),),
        finish="tool_calls",
    ),
    chat(
        "W26b arguments begin empty",
        call_delta(entry("calc", "", call_id="x", index=0)),
        call_delta(entry(None, '{"a":1}', index=0)),
        delta("tool_calls"),
        calls=(("x", "calc", '{"a":1}'),),
        finish="tool_calls",
    ),
    chat(
        "W26d the name comes last",
        call_delta(entry(None, '{"a":', call_id="x", index=0)),
        call_delta(entry("f", "1}", index=0)),
        delta("tool_calls"),
        calls=(("x", "f", '{"a":1}'),),
        finish="tool_calls",
    ),
    failed(
        "W28 a call without a name",
        call_delta(entry(None, "{}{}", call_id="u1")),
        STOP,
        reason="bad_response",
    ),
    chat(
        "W28 a call without a name next to text",
        delta(content="Hi"),
        call_delta(entry(None, "{}{}", call_id="u1")),
        STOP,
        text="Hi",
    ),
    chat(
        "W30 no arguments",
        call_delta(entry("now", call_id="x", index=0)),
        delta("tool_calls"),
        calls=(("x", "now", ""),),
        finish="tool_calls",
    ),
    chat(
        "W30 empty arguments",
        call_delta(entry("now", "", call_id="x", index=0)),
        delta("tool_calls"),
        calls=(("x", "now", ""),),
        finish="tool_calls",
    ),
    failed(
        "W32 cut by length before its name",
        call_delta({"index": 0, "id": "x", "type": "function", "function": {}}),
        delta("length"),
        reason="bad_response",
    ),
    chat(
        "W32 cut by length",
        call_delta(entry("write", '{"path":"/a","text":"abc', call_id="x", index=0)),
        delta("length"),
        calls=(("x", "write", '{"path":"/a","text":"abc'),),
        finish="length",
    ),
    chat(
        "all on index 0",
        call_delta(entry("f", "{}", call_id="x", index=0), entry("g", "{}", call_id="y", index=0)),
        delta("tool_calls"),
        calls=(("x", "f", "{}"), ("y", "g", "{}")),
        finish="tool_calls",
    ),
    chat(
        "head on index 0, tail on index 1",
        call_delta(entry("f", '{"a":1}', call_id="x", index=0)),
        call_delta(entry("g", "", call_id="y", index=0)),
        call_delta(entry(None, '{"b":', index=1)),
        call_delta(entry(None, "2}", index=1)),
        delta("tool_calls"),
        calls=(("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')),
        finish="tool_calls",
    ),
    chat(
        "a tail that goes on after another call began",
        call_delta(entry("g", "", call_id="y", index=0)),
        call_delta(entry(None, '{"b":', index=1)),
        call_delta(entry("h", "{}", call_id="z", index=2)),
        call_delta(entry(None, "2}", index=1)),
        delta("tool_calls"),
        calls=(("y", "g", '{"b":2}'), ("z", "h", "{}")),
        finish="tool_calls",
    ),
    chat(
        "no ids, all on index 0",
        call_delta(entry("f", '{"a":1}', index=0)),
        call_delta(entry("f", '{"a":2}', index=0)),
        delta("stop"),
        calls=(("call_0", "f", '{"a":1}'), ("call_1", "f", '{"a":2}')),
        finish="tool_calls",
    ),
    chat(
        "no ids, empty ones",
        call_delta(entry("f", "{}", call_id="", index=0), entry("g", "{}", call_id="", index=1)),
        STOP,
        calls=(("call_0", "f", "{}"), ("call_1", "g", "{}")),
        finish="tool_calls",
    ),
    chat(
        "the name with every fragment",
        call_delta(entry("f", '{"a":', call_id="x", index=0)),
        call_delta(entry("f", "1}", call_id="x", index=0)),
        call_delta(entry("f", "", index=0)),
        delta("tool_calls"),
        calls=(("x", "f", '{"a":1}'),),
        finish="tool_calls",
    ),
    chat(
        "one id for two calls",
        call_delta(entry("f", "{}", call_id="x", index=0), entry("g", "{}", call_id="x", index=1)),
        STOP,
        calls=(("x", "f", "{}"), ("call_1", "g", "{}")),
        finish="tool_calls",
    ),
    chat(
        "arguments as an object",
        call_delta(entry("f", {"a": 1}, call_id="x", index=0)),
        STOP,
        calls=(("x", "f", '{"a": 1}'),),
        finish="tool_calls",
    ),
    chat(
        "a function call of old",
        delta(function_call={"name": "f", "arguments": ""}),
        delta(function_call={"arguments": "{}"}),
        delta("function_call"),
        calls=(("call_0", "f", "{}"),),
        finish="tool_calls",
    ),
    chat(
        "text, then a call",
        delta(content="Let me see."),
        call_delta(entry("f", "{}", call_id="x", index=0)),
        delta("tool_calls"),
        text="Let me see.",
        calls=(("x", "f", "{}"),),
        finish="tool_calls",
    ),
    chat("finish says calls, there are none", delta(content="Hi"), delta("tool_calls"), text="Hi"),
    # Reasoning
    *(
        chat(f"W33 {field}", delta(**{field: "plan"}), delta(content="Hi"), STOP, text="Hi", reasoning="plan")
        for field in ("reasoning_content", "reasoning", "reasoning_text", "thinking")
    ),
    chat("W34 blank reasoning", delta(reasoning="  \n"), delta(content="Hi"), STOP, text="Hi"),
    chat(
        "W35a split tags",
        delta(content="<th"),
        delta(content="ink>plan"),
        delta(content="</thi"),
        delta(content="nk>Answer"),
        STOP,
        text="Answer",
        reasoning="plan",
    ),
    failed("W35c never closed", delta(content="<think>plan"), STOP, reason="empty", reasoning="plan"),
    chat(
        "W35e text about tags",
        delta(content="a < b, <thing>, "),
        delta(content="`<think>` is code"),
        STOP,
        text="a < b, <thing>, `<think>` is code",
    ),
    chat(
        "W35e text that looks like a tag",
        delta(content="<thin"),
        delta(content="g> "),
        delta(content="x"),
        STOP,
        text="<thing> x",
    ),
    chat("W35e the beginning of a tag is all", delta(content="<th"), STOP, text="<th"),
    chat(
        "W35e a tag in a code block",
        delta(content="```\n<think>\n"),
        delta(content="</think>\n```\nSo."),
        STOP,
        text="```\n<think>\n</think>\n```\nSo.",
    ),
    chat(
        "W35e a tag in an indented block",
        delta(content="See:\n\n    <think>x</think>"),
        STOP,
        text="See:\n\n    <think>x</think>",
    ),
    chat(
        "tags after the first words",
        delta(content="Wait.\n<th"),
        delta(content="inking>hm</thinking>"),
        delta(content="\nDone."),
        STOP,
        text="Wait.\n\nDone.",
        reasoning="hm",
    ),
    chat(
        "blanks before the tag, an empty thought",
        delta(content=" <think>"),
        delta(content="\n\n</think>\n\nHi"),
        STOP,
        text="Hi",
    ),
    chat(
        "a closing tag quoted in the thought",
        delta(content="<think>not `</think>"),
        delta(content="`, yes</think>Hi"),
        STOP,
        text="Hi",
        reasoning="not `</think>`, yes",
    ),
    chat("a closing tag that closes nothing", delta(content="Hi</think>"), STOP, text="Hi</think>"),
    chat(
        "tags, then a call",
        delta(content="<think>plan</think>"),
        call_delta(entry("f", "{}", call_id="x", index=0)),
        delta("tool_calls"),
        reasoning="plan",
        calls=(("x", "f", "{}"),),
        finish="tool_calls",
    ),
    chat(
        "reasoning and its details say the same",
        delta(
            reasoning="plan",
            reasoning_details=[{"type": "reasoning.text", "text": "plan", "index": 0}],
        ),
        delta(content="Hi"),
        STOP,
        text="Hi",
        reasoning="plan",
    ),
    chat(
        "reasoning details alone",
        delta(reasoning_details=[{"type": "reasoning.summary", "summary": "pl", "index": 0}]),
        delta(reasoning_details=[{"type": "reasoning.summary", "summary": "an", "index": 0}]),
        delta(reasoning_details="none", content="Hi"),
        STOP,
        text="Hi",
        reasoning="plan",
    ),
    chat(
        "W36 empty reasoning next to content",
        delta(content="Hi", reasoning=None, reasoning_content=""),
        STOP,
        text="Hi",
    ),
    chat(
        "thinking as a list",
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]}]),
        delta(content=[{"type": "text", "text": "Hi"}]),
        STOP,
        text="Hi",
        reasoning="plan",
    ),
    # Errors inside a status of success
    failed(
        "W37a error in a frame",
        frame({"id": "c", "choices": [], "error": {"code": 502, "message": "gone"}}),
        DONE,
        reason="provider_error",
    ),
    failed(
        "W37a error after text",
        delta(content="Hi"),
        frame(
            {
                "error": {"code": 502, "message": "gone"},
                "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
            }
        ),
        text="Hi",
        reason="provider_error",
    ),
    failed("W37c quota", frame({"error": {"message": "quota exceeded"}}), DONE, reason="quota"),
    failed(
        "W37e JSON that is an error",
        json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}).encode(),
        reason="bad_request",
    ),
    failed(
        "W39d overflow in a frame",
        frame({"error": {"code": 400, "message": "prompt is too long: 9 tokens > 8 maximum"}}),
        reason="overflow",
    ),
    failed(
        "Groq's failed generation",
        frame({"error": {"type": "invalid_request_error", "code": "tool_use_failed", "status_code": 400}}),
        reason="bad_request",
    ),
    failed(
        "W38 an error that is none of OpenAI's",
        frame({"success": False, "error": {"code": "INTERNAL", "status": 500, "message": "x"}}),
        reason="provider_error",
    ),
    failed(
        "a proxy that ends with its error",
        delta(content="Hi"),
        frame({"error": {"type": "server_error"}}),
        text="Hi",
        reason="provider_error",
    ),
    failed("DeepSeek ran out", delta("insufficient_system_resource"), reason="provider_error"),
    failed("finish of error", delta(content="Hi"), delta("error"), text="Hi", reason="provider_error"),
    failed("event: error", b'event: error\ndata: {"message":"x"}\n\n', reason="provider_error"),
    failed("event: error in words", b"event: error\ndata: out of memory\n\n", reason="provider_error"),
    failed("error as a string", frame({"error": "model not loaded"}), reason="provider_error"),
    failed(
        "rate limit before output",
        frame({"error": {"code": 429, "message": "x"}}),
        outcome="rejected",
        reason="rate_limit",
    ),
    failed(
        "overload after output",
        delta(content="Hi"),
        frame({"error": {"type": "overloaded_error"}}),
        reason="overloaded",
        text="Hi",
    ),
    failed(
        "bad frame", delta(content="Hi"), frame("{oops"), outcome="partial", reason="bad_response", text="Hi"
    ),
    failed(
        "a frame that is no object",
        delta(content="Hi"),
        frame("[1]"),
        outcome="partial",
        reason="bad_response",
        text="Hi",
    ),
    # A document although a stream was asked for
    chat(
        "a whole completion",
        json.dumps(
            {
                "id": "c",
                "choices": [
                    {
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "content": "Hi",
                            "tool_calls": [entry("f", "{}", call_id="x")],
                        },
                        "finish_reason": "tool_calls",
                    }
                ],
                "usage": USAGE,
            }
        ).encode(),
        text="Hi",
        calls=(("x", "f", "{}"),),
        finish="tool_calls",
        usage=COUNTED,
    ),
    failed(
        "half a completion",
        b'{"choices": [{"message": {"content": "H',
        outcome="partial",
        reason="bad_response",
    ),
    failed("some JSON", b'{"hello": 1}', outcome="partial", reason="bad_response"),
    failed(
        "a list of errors",
        b'[{"error": {"code": 429, "message": "x"}}]',
        outcome="rejected",
        reason="rate_limit",
    ),
)


def event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name} | fields, ensure_ascii=False)}\n\n".encode()


def started(**usage: int) -> bytes:
    return event("message_start", message={"id": "msg_1", "content": [], "usage": usage})


def block(index: int = 0, kind: Any = "text", **fields: Any) -> bytes:
    return event("content_block_start", index=index, content_block={"type": kind} | fields)


def block_delta(kind: Any, index: int = 0, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind} | fields)


def block_stop(index: int = 0) -> bytes:
    return event("content_block_stop", index=index)


def stop_reason(reason: str | None, **usage: int) -> bytes:
    return event("message_delta", delta={"stop_reason": reason}, usage=usage)


START: Final = started(input_tokens=12, output_tokens=1)
MESSAGE_STOP: Final = event("message_stop")
HI: Final = (block(text=""), block_delta("text_delta", text="Hi"), block_stop())
END: Final = (stop_reason("end_turn", output_tokens=5), MESSAGE_STOP)
AT_START: Final = Usage(input_tokens=12, output_tokens=1)


def message(name: str, *frames: bytes, usage: Usage | None = COUNTED, **expected: Any) -> Answer:
    return Answer(name=name, frames=frames, usage=usage, reader=message_reader, **expected)


def no_message(
    name: str, *frames: bytes, outcome: str = "failed", usage: Usage | None = AT_START, **expected: Any
) -> Answer:
    return Answer(
        name=name, frames=frames, outcome=outcome, finish=None, usage=usage, reader=message_reader, **expected
    )


MESSAGES: Final = (
    message("plain", START, event("ping"), *HI, *END, text="Hi"),
    message(
        "unknown events and blocks are skipped",
        START,
        event("surprise", x=1),
        b"event: note\ndata: no json\n\n",
        block(9, "surprise"),
        block_delta("surprise_delta", 9),
        block_stop(9),
        *HI,
        *END,
        text="Hi",
    ),
    message(
        "types that are no strings",
        START,
        block(8, ["tool_use"]),
        block_delta(["text_delta"], 8),
        block_stop(8),
        frame({"type": {}}),
        *HI,
        *END,
        text="Hi",
    ),
    message("no event names", *(frame.split(b"\n", 1)[1] for frame in (START, *HI, *END)), text="Hi"),
    message("text in the start of the block", START, block(text="Hi"), block_stop(), *END, text="Hi"),
    message(
        "blocks that nothing opened",
        START,
        block_delta("thinking_delta", 0, thinking="hm"),
        block_delta("text_delta", 1, text="H"),
        block_delta("text_delta", 1, text="i"),
        block_stop(1),
        block_delta("text_delta", 1, text="late"),
        block_delta("input_json_delta", 5, partial_json="{}"),
        block_stop(0),
        *END,
        text="Hi",
        reasoning="hm",
    ),
    message(
        "two texts",
        START,
        *HI,
        block(1, text=""),
        block_delta("text_delta", 1, text=" you"),
        block_stop(1),
        *END,
        text="Hi you",
    ),
    message(
        "a tool that the provider runs",
        START,
        block(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        block_delta("input_json_delta", 0, partial_json='{"query": "x"}'),
        block_stop(0),
        block(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"title": "T", "url": "u"}]),
        block_stop(1),
        block(2, text="Hi"),
        block_stop(2),
        *END,
        text="Hi",
        calls=(("srvtoolu_1", "web_search", '{"query": "x"}'),),
    ),
    message("message_stop lost", START, *HI, stop_reason("end_turn", output_tokens=5), text="Hi"),
    message(
        "length",
        START,
        *HI,
        stop_reason("max_tokens", output_tokens=5),
        MESSAGE_STOP,
        text="Hi",
        finish="length",
    ),
    message(
        "refused after text",
        START,
        *HI,
        stop_reason("refusal", output_tokens=5),
        MESSAGE_STOP,
        text="Hi",
        finish="content_filter",
    ),
    message(
        "paused",
        START,
        *HI,
        stop_reason("pause_turn", output_tokens=5),
        MESSAGE_STOP,
        text="Hi",
        finish="paused",
    ),
    no_message(
        "refused",
        START,
        stop_reason("refusal", output_tokens=5),
        MESSAGE_STOP,
        reason="content_filter",
        usage=COUNTED,
    ),
    no_message("nothing", START, *END, reason="empty", usage=COUNTED),
    no_message("no stop reason", START, *HI, MESSAGE_STOP, outcome="partial", reason="cut", text="Hi"),
    no_message(
        "stop reason of null",
        START,
        *HI,
        stop_reason(None),
        MESSAGE_STOP,
        outcome="partial",
        reason="cut",
        text="Hi",
    ),
    no_message("cut in a text", START, *HI[:2], outcome="partial", reason="cut", text="Hi"),
    no_message(
        "W21 cut in the input of a call",
        START,
        block(0, "tool_use", id="t1", name="f", input={}),
        block_delta("input_json_delta", partial_json=" s"),
        outcome="partial",
        reason="cut",
        calls=(("t1", "f", " s"),),
    ),
    message(
        "a call",
        START,
        *HI,
        block(1, "tool_use", id="t1", name="f", input={}),
        block_delta("input_json_delta", 1, partial_json=""),
        block_delta("input_json_delta", 1, partial_json='{"a":'),
        block_delta("input_json_delta", 1, partial_json="1}"),
        block_stop(1),
        stop_reason("tool_use", output_tokens=5),
        MESSAGE_STOP,
        text="Hi",
        calls=(("t1", "f", '{"a":1}'),),
        finish="tool_calls",
    ),
    message(
        "input given at once",
        START,
        block(0, "tool_use", id="t1", name="f", input={"a": 1}),
        block_stop(),
        stop_reason("tool_use", output_tokens=5),
        MESSAGE_STOP,
        calls=(("t1", "f", '{"a": 1}'),),
        finish="tool_calls",
    ),
    message(
        "thinking",
        START,
        block(0, "thinking", thinking="", signature=""),
        block_delta("thinking_delta", thinking="plan"),
        block_delta("signature_delta", signature="sig"),
        block_stop(),
        block(1, text=""),
        block_delta("text_delta", 1, text="Hi"),
        block_stop(1),
        *END,
        text="Hi",
        reasoning="plan",
    ),
    no_message(
        "error before output",
        START,
        event("error", error={"type": "overloaded_error", "message": "x"}),
        outcome="rejected",
        reason="overloaded",
    ),
    no_message(
        "error after output",
        START,
        *HI,
        event("error", error={"type": "overloaded_error", "message": "x"}),
        reason="overloaded",
        text="Hi",
    ),
    no_message(
        "other error",
        START,
        event("error", error={"type": "api_error", "message": "x"}),
        reason="provider_error",
    ),
    no_message(
        "error without a name",
        START,
        frame({"type": "error", "error": {"type": "api_error"}}),
        reason="provider_error",
    ),
    no_message(
        "error in a document",
        b'{"type":"error","error":{"type":"invalid_request_error","message":"x"}}',
        reason="bad_request",
        usage=None,
    ),
    no_message(
        "bad frame",
        START,
        *HI,
        b"event: message_delta\ndata: {oops\n\n",
        outcome="partial",
        reason="bad_response",
        text="Hi",
    ),
    message(
        "cache counts",
        started(input_tokens=2, cache_read_input_tokens=9, cache_creation_input_tokens=4),
        *HI,
        *END,
        text="Hi",
        usage=Usage(input_tokens=2, output_tokens=5, cache_read_tokens=9, cache_write_tokens=4),
    ),
    message(
        "a whole message",
        json.dumps(
            {
                "type": "message",
                "id": "msg_1",
                "content": [
                    {"type": "text", "text": "Hi"},
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
                ],
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 12, "output_tokens": 5},
            }
        ).encode(),
        text="Hi",
        calls=(("t1", "f", '{"a": 1}'),),
        finish="tool_calls",
    ),
)

ALL: Final = (*CHAT, *MESSAGES)
