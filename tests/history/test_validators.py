"""The validator refuses what providers refuse, in their words: the raw requests of real failures."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.history import validators
from tests.history.validators import Refused

Message = dict[str, Any]

ASK: Message = {"role": "user", "content": "Add"}
NEXT: Message = {"role": "user", "content": "next"}
DONE: Message = {"role": "assistant", "content": "Done."}


def chat_call(call_id: str = "c1", name: str = "add", arguments: str = "{}") -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Message, content: str | None = None) -> Message:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tool(call_id: str = "c1", content: Any = "2") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*messages: Message, **fields: Any) -> Message:
    return {"messages": list(messages), **fields}


ANSWERED = (ASK, calling(chat_call()), tool())


@pytest.mark.parametrize(
    "body",
    [
        chat(ASK),
        chat({"role": "system", "content": "Be kind."}, ASK, DONE, NEXT),
        chat(*ANSWERED),
        chat(*ANSWERED, NEXT),
        chat(ASK, calling(chat_call("a"), chat_call("b")), tool("b"), tool("a"), DONE, NEXT),
    ],
)
def test_a_good_chat_request_passes(body: Message) -> None:
    validators.chat(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(chat(), "too short", id="nothing"),
        pytest.param(
            chat(ASK, calling(chat_call()), NEXT), "did not have response messages: c1", id="R1-no-result"
        ),
        pytest.param(
            chat(ASK, calling(chat_call())), "did not have response messages: c1", id="R1-at-the-end"
        ),
        pytest.param(
            chat(ASK, calling(chat_call("a"), chat_call("b")), tool("a"), NEXT),
            "did not have response messages: b",
            id="T22-some-of-several",
        ),
        pytest.param(
            chat(ASK, calling(chat_call()), NEXT, tool()), "did not have response messages", id="user-between"
        ),
        pytest.param(chat(ASK, tool()), "must be a response to a preceeding message", id="orphan-result"),
        pytest.param(
            chat(*ANSWERED, tool()), "must be a response to a preceeding message", id="durable-10-two-results"
        ),
        pytest.param(
            chat(*ANSWERED, calling(chat_call()), tool()), "Duplicate tool call id: c1", id="ids-repeat"
        ),
        pytest.param(chat(ASK, {"role": "assistant", "content": None}, NEXT), "must be set", id="empty"),
        pytest.param(chat(ASK, {"role": "assistant", "content": ""}, NEXT), "is empty", id="R4-empty"),
        pytest.param(chat(ASK, {"role": "assistant", "content": "  "}, NEXT), "is empty", id="R4-blank"),
        pytest.param(
            chat(ASK, {"role": "assistant", "content": [{"type": "text", "text": ""}]}, NEXT),
            "is empty",
            id="R4-empty-block",
        ),
        pytest.param(chat({"role": "user", "content": ""}), "is empty", id="user-says-nothing"),
        pytest.param(chat(ASK, calling(chat_call()), tool(content="")), "is empty", id="R4-empty-result"),
        pytest.param(chat(ASK, {**DONE, "tool_calls": []}, NEXT), "too short", id="no-calls-at-all"),
        pytest.param(chat(ASK, NEXT), "must alternate", id="two-users"),
        pytest.param(chat(ASK, DONE, DONE, NEXT), "must alternate", id="two-assistants"),
        pytest.param(chat(DONE, NEXT), "must alternate", id="assistant-first"),
        pytest.param(
            chat(ASK, {"role": "system", "content": "x"}, NEXT), "at the beginning", id="late-system"
        ),
        pytest.param(chat(ASK, DONE), "Expected last role User or Tool", id="prefill"),
        pytest.param(chat(ASK, calling(chat_call("c" * 41)), tool("c" * 41)), "Tool call id", id="long-id"),
        pytest.param(chat(ASK, calling(chat_call("a:1")), tool("a:1")), "Tool call id", id="free-id"),
        pytest.param(chat(ASK, calling(chat_call("")), tool("")), "Tool call id", id="empty-id"),
        pytest.param(
            chat(ASK, calling(chat_call(name="a b")), tool()), "does not match pattern", id="name-of-call"
        ),
        pytest.param(
            chat(ASK, calling(chat_call(arguments='{"a":')), tool()), "invalid tool call arguments", id="half"
        ),
        pytest.param(
            chat(ASK, calling(chat_call(arguments="[]")), tool()), "invalid tool call arguments", id="array"
        ),
        pytest.param(
            chat(ASK, tools=[{"function": {"name": "a.b"}}]),
            "Invalid 'tools[0].function.name'",
            id="name-of-tool",
        ),
        pytest.param(chat({"role": "user", "content": "\ud800"}), "could not parse", id="no-utf-8"),
        pytest.param(chat(ASK, temperature=float("nan")), "could not parse", id="no-json"),
    ],
)
def test_a_chat_request_is_refused(body: Message, words: str) -> None:
    with pytest.raises(Refused) as refused:
        validators.chat(body)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (chat(ASK, calling(chat_call("abcdefghi")), tool("abcdefghi"), NEXT), "Unexpected role 'user'"),
        (chat(*ANSWERED), "Tool call id was c1"),
    ],
)
def test_a_chat_request_is_refused_by_mistral_alone(body: Message, words: str) -> None:
    validators.chat(body)
    with pytest.raises(Refused, match=words):
        validators.chat(body, mistral=True)


def text(words: str = "Hi") -> Message:
    return {"type": "text", "text": words}


def use(call_id: str = "t1", kind: str = "tool_use", **fields: Any) -> Message:
    return {"type": kind, "id": call_id, "name": "add", "input": {}, **fields}


def result(call_id: str = "t1", content: Any = "2") -> Message:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def user(*blocks: Message) -> Message:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Message) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def anthropic(*messages: Message, tools: Any = ({"name": "add"},)) -> Message:
    return {"messages": list(messages), "tools": list(tools)}


THOUGHT: Message = {"type": "thinking", "thinking": "A plan.", "signature": "sig"}
SEARCH = use("srvtoolu_1", "server_tool_use", name="web_search")
FOUND: Message = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
HI = user(text())


@pytest.mark.parametrize(
    "body",
    [
        anthropic(HI, tools=()),
        anthropic(HI, assistant(THOUGHT, text(), use(), use("t2")), user(result("t2"), result(), text())),
        anthropic(HI, assistant(SEARCH, FOUND, text()), HI),
        anthropic(HI, {"role": "assistant", "content": "Hello"}, HI),
    ],
)
def test_a_good_message_request_passes(body: Message) -> None:
    validators.messages(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(anthropic(), "at least one message", id="nothing"),
        pytest.param(
            anthropic(HI, assistant(use()), HI),
            "`tool_use` ids were found without `tool_result` blocks immediately after: t1",
            id="R1-no-result",
        ),
        pytest.param(
            anthropic(HI, assistant(use()), HI, assistant(text()), user(result())),
            "`tool_use` ids were found without `tool_result` blocks immediately after: t1",
            id="result-too-late",
        ),
        pytest.param(
            anthropic(HI, assistant(use(), text("more")), user(result())),
            "at the end",
            id="R2-text-after-call",
        ),
        pytest.param(anthropic(user(result())), "unexpected `tool_use_id`", id="orphan-result"),
        pytest.param(
            anthropic(HI, assistant(use()), user(result(), result())), "a single result: t1", id="two-results"
        ),
        pytest.param(
            anthropic(HI, assistant(use()), user(text(), result())),
            "must come first",
            id="text-before-result",
        ),
        pytest.param(
            anthropic(HI, assistant(use()), user(result()), assistant(use()), user(result())),
            "ids must be unique: t1",
            id="ids-repeat",
        ),
        pytest.param(anthropic(HI, assistant(text("")), HI), "must be non-empty", id="R4-empty-block"),
        pytest.param(anthropic(HI, assistant(text(" ")), HI), "must contain non-whitespace", id="R4-blank"),
        pytest.param(anthropic(HI, {"role": "assistant", "content": ""}, HI), "non-empty", id="R4-empty"),
        pytest.param(anthropic(HI, assistant(), HI), "must have non-empty content", id="no-block"),
        pytest.param(anthropic(user()), "must have non-empty content", id="user-says-nothing"),
        pytest.param(
            anthropic(HI, assistant(use()), user(result(content=""))), "result is empty", id="R4-empty-result"
        ),
        pytest.param(
            anthropic(HI, assistant(use()), user(result(content=[]))),
            "result is empty",
            id="no-block-in-result",
        ),
        pytest.param(anthropic(HI, HI), "must alternate", id="two-users"),
        pytest.param(
            anthropic(HI, assistant(text()), assistant(text()), HI), "must alternate", id="two-answers"
        ),
        pytest.param(anthropic(assistant(text()), HI), "first message must use", id="assistant-first"),
        pytest.param(anthropic(HI, assistant(text())), "prefill", id="prefill"),
        pytest.param(
            anthropic(HI, assistant({**THOUGHT, "signature": ""}, text()), HI),
            "Invalid `signature`",
            id="unsigned",
        ),
        pytest.param(
            anthropic(HI, assistant({**THOUGHT, "thinking": ""}, text()), HI),
            "must contain thinking",
            id="signature-without-thinking",
        ),
        pytest.param(
            anthropic(HI, assistant({"type": "redacted_thinking", "data": ""}, text()), HI),
            "Invalid `data`",
            id="redacted-to-nothing",
        ),
        pytest.param(anthropic(HI, assistant(THOUGHT), HI), "cannot be `thinking`", id="thinking-alone"),
        pytest.param(
            anthropic(HI, assistant(text(), THOUGHT), HI), "cannot be `thinking`", id="thinking-last"
        ),
        pytest.param(
            anthropic(HI, assistant(SEARCH, text()), HI),
            "`web_search` tool use with id `srvtoolu_1` was found without a corresponding",
            id="hosted-cut",
        ),
        pytest.param(
            anthropic(HI, assistant(SEARCH), user(FOUND)),
            "without a corresponding",
            id="hosted-result-elsewhere",
        ),
        pytest.param(
            anthropic(HI, assistant(FOUND, text()), HI),
            "unexpected `web_search_tool_result`",
            id="hosted-orphan",
        ),
        pytest.param(
            anthropic(HI, assistant({**SEARCH, "id": "t1"}, {**FOUND, "tool_use_id": "t1"}), HI),
            "server_tool_use.id: String should match",
            id="hosted-id",
        ),
        pytest.param(
            anthropic(HI, assistant(use("a:1")), user(result("a:1"))), "tool_use.id: String should", id="id"
        ),
        pytest.param(
            anthropic(HI, assistant(use(name="a b")), user(result())),
            "tool_use.name: String",
            id="name-of-call",
        ),
        pytest.param(
            anthropic(HI, assistant(use(input='{"a":')), user(result())), "valid dictionary", id="half-a-call"
        ),
        pytest.param(
            anthropic(HI, assistant(use()), user(result()), tools=()), "must define tools", id="tools-removed"
        ),
        pytest.param(anthropic(HI, tools=[{"name": "a.b"}]), "tools.0.custom.name", id="name-of-tool"),
        pytest.param(anthropic(user(use())), "only be in `assistant`", id="call-of-a-user"),
        pytest.param(
            anthropic(HI, assistant(result()), HI), "only be in `user`", id="result-of-an-assistant"
        ),
    ],
)
def test_a_message_request_is_refused(body: Message, words: str) -> None:
    with pytest.raises(Refused) as refused:
        validators.messages(body)
    assert words in str(refused.value)


def function_call(call_id: str = "call_1", **fields: Any) -> Message:
    return {"type": "function_call", "call_id": call_id, "name": "add", "arguments": "{}", **fields}


def output(call_id: str = "call_1", words: str = "2") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": words}


def items(*given: Message, **fields: Any) -> Message:
    return {"input": list(given), **fields}


THINKING: Message = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


@pytest.mark.parametrize(
    "body",
    [
        items(ASK),
        items(ASK, THINKING, function_call(), output()),
        items(ASK, THINKING, THINKING, DONE, NEXT),
        items(ASK, function_call("a"), function_call("b"), output("b"), output("a"), NEXT),
        items(ASK, THINKING, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, DONE, NEXT),
    ],
)
def test_a_good_responses_request_passes(body: Message) -> None:
    validators.responses(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(items(), "Missing required parameter", id="nothing"),
        pytest.param(
            items(ASK, function_call(), NEXT), "No tool output found for function call call_1", id="R1"
        ),
        pytest.param(items(ASK, function_call()), "No tool output found", id="R1-at-the-end"),
        pytest.param(items(ASK, output()), "No tool call found for function call output", id="orphan-output"),
        pytest.param(items(ASK, output(), function_call()), "No tool call found", id="output-before-call"),
        pytest.param(items(ASK, function_call(), output(), output()), "No tool call found", id="two-outputs"),
        pytest.param(
            items(ASK, function_call(), output(), function_call(), output()),
            "Duplicate call_id",
            id="ids-repeat",
        ),
        pytest.param(items(ASK, THINKING, NEXT), "without its required following item", id="no-follower"),
        pytest.param(
            items(ASK, function_call(), THINKING, output()), "required following", id="follows-a-result"
        ),
        pytest.param(items(ASK, THINKING), "without its required following item", id="reasoning-last"),
        pytest.param(
            items(ASK, {"type": "reasoning", "summary": []}, DONE, NEXT), "encrypted_content", id="unsigned"
        ),
        pytest.param(items(ASK, {**DONE, "content": ""}, NEXT), "empty text", id="R4-empty"),
        pytest.param(items(ASK, {**DONE, "content": []}, NEXT), "empty array", id="no-content"),
        pytest.param(items(ASK, function_call(), output(words="")), "empty string", id="R4-empty-output"),
        pytest.param(items(ASK, DONE), "must end with a user message", id="prefill"),
        pytest.param(
            items(ASK, function_call("c" * 65), output("c" * 65)), "maximum length 64", id="long-id"
        ),
        pytest.param(
            items(ASK, function_call(id="f" * 65), output()), "maximum length 64", id="long-item-id"
        ),
        pytest.param(items(ASK, function_call(name="a b"), output()), "does not match pattern", id="name"),
        pytest.param(items(ASK, function_call(arguments='{"a'), output()), "invalid JSON", id="half-a-call"),
    ],
)
def test_a_responses_request_is_refused(body: Message, words: str) -> None:
    with pytest.raises(Refused) as refused:
        validators.responses(body)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "validate", [validators.chat, partial(validators.chat, mistral=True), validators.messages]
)
def test_what_cannot_be_written_as_json_is_refused(validate: Callable[[Message], None]) -> None:
    with pytest.raises(Refused, match="could not parse"):
        validate({"messages": [], "temperature": float("inf")})
