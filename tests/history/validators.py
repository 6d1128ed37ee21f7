"""Refuses request bodies the way providers do, with the words they use. Knows nothing of how ours are made.

Each function takes the strictest reading that any provider of the format has: what passes here passes at
all of them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

Body = dict[str, Any]

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
CHAT_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,40}\Z")
MISTRAL_ID: Final = re.compile(r"[a-zA-Z0-9]{9}\Z")
ANTHROPIC_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
HOSTED_ID: Final = re.compile(r"[a-z]+toolu_[a-zA-Z0-9_]+\Z")


class Refused(Exception):
    """A 400, with its message."""


def _need(holds: object, message: str) -> None:
    if not holds:
        raise Refused(message)


def _is_said(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _sendable(body: Body) -> None:
    """What a JSON document in UTF-8 can carry at all."""
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise Refused("We could not parse the JSON body of your request.") from error


def _unique(ids: Iterable[str], message: str) -> None:
    repeated = [each for each, times in Counter(ids).items() if times > 1]
    _need(not repeated, f"{message}: {', '.join(repeated)}")


# Chat completions


def chat(body: Body, *, mistral: bool = False) -> None:
    """OpenAI and the servers compatible with it. Raises Refused."""
    _sendable(body)
    messages = body["messages"]
    _need(messages, "[] is too short - 'messages'")
    spoken = messages[1:] if messages[0]["role"] == "system" else messages
    _need(all(each["role"] != "system" for each in spoken), "System message must be at the beginning.")
    _need(spoken and spoken[0]["role"] == "user", "Conversation roles must alternate user/assistant/…")
    for message in spoken:
        _chat_content(message)
    _chat_pairs(spoken, MISTRAL_ID if mistral else CHAT_ID)
    _chat_order(spoken, mistral=mistral)
    for index, tool in enumerate(body.get("tools", [])):
        name = tool["function"]["name"]
        _need(NAME.match(name), f"Invalid 'tools[{index}].function.name': string does not match pattern")


def _chat_content(message: Body) -> None:
    content, role = message.get("content"), message["role"]
    calls = message.get("tool_calls")
    _need(calls != [], "[] is too short - 'messages.tool_calls'")
    if content is None:
        _need(role == "assistant" and calls, "Invalid assistant message: content or tool_calls must be set")
        return
    texts = [each.get("text") for each in content] if isinstance(content, list) else [content]
    _need(texts and all(_is_said(text) for text in texts), "text content is empty")


def _chat_order(messages: list[Body], *, mistral: bool) -> None:
    roles = [message["role"] for message in messages]
    for before, after in pairwise(roles):
        _need(
            before != after or after == "tool",
            "After the optional system message, conversation roles must alternate user/assistant/…",
        )
        _need(
            not (mistral and (before, after) == ("tool", "user")), "Unexpected role 'user' after role 'tool'"
        )
    _need(
        roles[-1] != "assistant",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    )


def _chat_pairs(messages: list[Body], pattern: re.Pattern[str]) -> None:
    seen: list[str] = []
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            _need(
                call_id in open_ids,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                "with 'tool_calls'.",
            )
            open_ids.remove(call_id)
            continue
        _need_responses(open_ids)
        open_ids = []
        for call in message.get("tool_calls") or []:
            _chat_call(call, pattern)
            open_ids.append(call["id"])
        seen += open_ids
    _need_responses(open_ids)
    _unique(seen, "Duplicate tool call id")


def _need_responses(open_ids: list[str]) -> None:
    _need(
        not open_ids,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(open_ids),
    )


def _chat_call(call: Body, pattern: re.Pattern[str]) -> None:
    _need(pattern.match(call["id"]), f"Tool call id was {call['id']} but must match {pattern.pattern}")
    function = call["function"]
    _need(
        NAME.match(function["name"]),
        "Invalid 'messages.tool_calls.function.name': string does not match pattern",
    )
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = None
    _need(isinstance(arguments, dict), "invalid tool call arguments")


# Anthropic messages


def messages(body: Body) -> None:
    """Anthropic and the servers compatible with it. Raises Refused."""
    _sendable(body)
    given = body["messages"]
    _need(given, "messages: at least one message is required")
    _need(given[0]["role"] == "user", 'messages: first message must use the "user" role')
    for before, after in pairwise(given):
        _need(
            before["role"] != after["role"],
            'messages: roles must alternate between "user" and "assistant", but found multiple in a row',
        )
    _need(
        given[-1]["role"] == "user",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    for index, message in enumerate(given):
        _content(message, f"messages.{index}")
    _pairs(given)
    _hosted_pairs(given)
    uses = [block for message in given for block in _blocks(message, "tool_use")]
    _need(not uses or body.get("tools"), "Requests which include `tool_use` blocks must define tools")
    _unique((use["id"] for use in uses), "messages: `tool_use` ids must be unique")
    for index, tool in enumerate(body.get("tools", [])):
        _need(NAME.match(tool["name"]), f"tools.{index}.custom.name: String should match pattern")


def _blocks(message: Body, kind: str) -> list[Body]:
    content = message["content"]
    return [] if isinstance(content, str) else [block for block in content if block["type"] == kind]


def _content(message: Body, place: str) -> None:
    content = message["content"]
    if isinstance(content, str):
        _text(content, place)
        return
    _need(content, f"{place}: all messages must have non-empty content")
    for index, block in enumerate(content):
        _block(block, message["role"], f"{place}.content.{index}")
    if message["role"] == "assistant":
        _assistant_order(content, place)
    else:
        _results_first(content, place)


def _block(block: Body, role: str, place: str) -> None:
    match block["type"]:
        case "text":
            _text(block["text"], place)
        case "thinking":
            signature = role == "assistant" and block.get("signature")
            _need(signature, f"{place}: Invalid `signature` in `thinking` block")
            _need(_is_said(block["thinking"]), f"{place}.thinking: each thinking block must contain thinking")
        case "redacted_thinking":
            _need(
                role == "assistant" and block.get("data"),
                f"{place}: Invalid `data` in `redacted_thinking` block",
            )
        case "tool_use":
            _use(block, ANTHROPIC_ID, role, place)
        case "server_tool_use" | "mcp_tool_use":
            _use(block, HOSTED_ID, role, place)
        case "tool_result":
            _need(role == "user", f"{place}: `tool_result` blocks can only be in `user` messages")
            content = block.get("content")
            texts = [each.get("text") for each in content] if isinstance(content, list) else [content]
            _need(texts and all(map(_is_said, texts)), f"{place}.content: tool result is empty")


def _text(text: Any, place: str) -> None:
    _need(text, f"{place}: text content blocks must be non-empty")
    _need(_is_said(text), f"{place}: text content blocks must contain non-whitespace text")


def _use(block: Body, pattern: re.Pattern[str], role: str, place: str) -> None:
    kind = block["type"]
    _need(role == "assistant", f"{place}: `{kind}` blocks can only be in `assistant` messages")
    _need(pattern.match(block["id"]), f"{place}.{kind}.id: String should match pattern '{pattern.pattern}'")
    _need(NAME.match(block["name"]), f"{place}.{kind}.name: String should match pattern '{NAME.pattern}'")
    _need(isinstance(block["input"], dict), f"{place}.{kind}.input: Input should be a valid dictionary")


def _assistant_order(content: list[Body], place: str) -> None:
    kinds = [block["type"] for block in content]
    _need(
        kinds[-1] not in ("thinking", "redacted_thinking"),
        f"{place}: The final block in an assistant message cannot be `thinking`.",
    )
    if "tool_use" in kinds:
        after = kinds[kinds.index("tool_use") :]
        _need(set(after) == {"tool_use"}, f"{place}: `tool_use` blocks must be at the end of the message")


def _results_first(content: list[Body], place: str) -> None:
    are_results = [block["type"] == "tool_result" for block in content]
    _need(
        are_results == sorted(are_results, reverse=True),
        f"{place}: `tool_result` blocks must come first in the content",
    )


def _pairs(given: list[Body]) -> None:
    for index, message in enumerate(given):
        uses = [block["id"] for block in _blocks(message, "tool_use")]
        following = given[index + 1] if index + 1 < len(given) else {"content": []}
        results = [block["tool_use_id"] for block in _blocks(following, "tool_result")]
        missing = [each for each in uses if each not in results]
        _need(
            not missing,
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in "
            "the next message.",
        )
        _unique(results, f"messages.{index + 1}: each tool_use must have a single result")
        before = [] if index == 0 else [block["id"] for block in _blocks(given[index - 1], "tool_use")]
        for block in _blocks(message, "tool_result"):
            _need(
                block["tool_use_id"] in before,
                f"messages.{index}.content: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message.",
            )


def _hosted_pairs(given: list[Body]) -> None:
    for index, message in enumerate(given):
        waiting: dict[str, str] = {}
        for block in [] if isinstance(message["content"], str) else message["content"]:
            if block["type"] in ("server_tool_use", "mcp_tool_use"):
                waiting[block["id"]] = block["name"]
            elif block["type"].endswith("_tool_result"):
                _need(
                    waiting.pop(block["tool_use_id"], None),
                    f"messages.{index}: unexpected `{block['type']}` with id `{block['tool_use_id']}`",
                )
        for call_id, name in waiting.items():
            raise Refused(
                f"messages.{index}: `{name}` tool use with id `{call_id}` was found without a corresponding "
                f"`{name}_tool_result` block"
            )


# OpenAI responses


def responses(body: Body) -> None:
    """The items of ``input``. Raises Refused."""
    _sendable(body)
    items = body["input"]
    _need(items, "Missing required parameter: 'input'.")
    for index, item in enumerate(items):
        _item(item, f"input[{index}]")
    _followers(items)
    _outputs(items)
    last = items[-1]
    _need(
        last.get("type", "message") != "message" or last["role"] != "assistant",
        "The conversation must end with a user message or a tool output.",
    )
    for index, tool in enumerate(body.get("tools", [])):
        _need("name" not in tool or NAME.match(tool["name"]), f"Invalid 'tools[{index}].name'")


def _item(item: Body, place: str) -> None:
    match item.get("type", "message"):
        case "message":
            _need(list(_item_texts(item)), f"Invalid '{place}.content': empty array")
            _need(all(map(_is_said, _item_texts(item))), f"Invalid '{place}.content': empty text")
        case "function_call":
            _short(item["call_id"], f"{place}.call_id")
            _short(item.get("id", ""), f"{place}.id")
            _need(NAME.match(item["name"]), f"Invalid '{place}.name': string does not match pattern.")
            try:
                arguments = json.loads(item["arguments"])
            except ValueError:
                arguments = None
            _need(isinstance(arguments, dict), f"Invalid '{place}.arguments': invalid JSON.")
        case "function_call_output":
            _short(item["call_id"], f"{place}.call_id")
            _need(_is_said(item["output"]), f"Invalid '{place}.output': empty string")
        case "reasoning":
            _need(
                item.get("encrypted_content") or item.get("id"),
                f"Missing required parameter: '{place}.encrypted_content'.",
            )


def _item_texts(item: Body) -> Iterator[Any]:
    content = item["content"]
    if isinstance(content, str):
        yield content
        return
    for piece in content:
        yield piece.get("text")


def _short(call_id: str, place: str) -> None:
    _need(
        len(call_id) <= 64,
        f"Invalid '{place}': string too long. Expected a string with maximum length 64, but got a string "
        f"with length {len(call_id)} instead.",
    )


def _followers(items: list[Body]) -> None:
    """Reasoning stands directly before what it led to (more reasoning may stand between)."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        later = (each for each in items[index + 1 :] if each.get("type") != "reasoning")
        follower = next(later, {"role": "user"})
        _need(
            follower.get("role", "assistant") == "assistant"
            and follower.get("type") != "function_call_output",
            f"Item '{item.get('id', 'rs')}' of type 'reasoning' was provided without its required following "
            "item.",
        )


def _outputs(items: list[Body]) -> None:
    made: list[str] = []
    waiting: list[str] = []
    for item in items:
        match item.get("type", "message"):
            case "function_call":
                made.append(item["call_id"])
                waiting.append(item["call_id"])
            case "function_call_output":
                _need(
                    item["call_id"] in waiting,
                    f"No tool call found for function call output with call_id {item['call_id']}.",
                )
                waiting.remove(item["call_id"])
            case "message" if item["role"] != "assistant":
                _need(not waiting, f"No tool output found for function call {', '.join(waiting)}.")
    _need(not waiting, f"No tool output found for function call {', '.join(waiting)}.")
    _unique(made, "Duplicate call_id")
