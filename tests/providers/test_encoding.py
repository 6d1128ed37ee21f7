"""Request bodies are what the vendors' own SDKs would send, and satisfy what the APIs ask of a history."""

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from schema.turns import (
    AssistantBlock,
    AssistantTurn,
    CallBlock,
    HostedResult,
    ReasoningBlock,
    ResultTurn,
    TextBlock,
    ToolDefinition,
    Turn,
    UserTurn,
)
from sessions_app.providers import anthropic, call_ids, openai_chat, port
from sessions_app.providers.call_ids import CallIdRule
from tests.providers.asking import ATTEMPT, request, result, said

CHAT = openai_chat.ChatCompletions(limit_field="max_completion_tokens")
MESSAGES = anthropic.Messages()
OPENAI_TYPE: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsStreaming)
ANTHROPIC_TYPE: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)

ADD = ToolDefinition(
    name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "number"}}}
)
CALL = CallBlock(call_id="c1", name="add", input={"a": 1})


def accepted(adapter: TypeAdapter[Any], body: Any) -> Any:
    """The body as the SDK's types read it: a field that they do not know would be missing."""
    return _plain(adapter.validate_python(body))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return value


def chat(*turns: Turn | str, **fields: Any) -> Any:
    body = CHAT.encode(request(*turns, **fields))
    assert accepted(OPENAI_TYPE, body) == body
    return body


def messages(*turns: Turn | str, **fields: Any) -> Any:
    body = MESSAGES.encode(request(*turns, **fields))
    assert accepted(ANTHROPIC_TYPE, body) == body
    return body


def test_a_chat_request_streams_and_asks_for_usage() -> None:
    body = chat("Hi", system="Be kind.", tools=(ADD,), max_output_tokens=50)

    assert body == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "add", "description": "Adds.", "parameters": ADD.parameters},
            }
        ],
        "max_completion_tokens": 50,
    }


def test_a_compatible_server_gets_the_old_name_of_the_limit() -> None:
    body = openai_chat.ChatCompletions(limit_field="max_tokens").encode(request(max_output_tokens=50))

    assert body["max_tokens"] == 50
    assert "max_completion_tokens" not in body


def test_a_message_request_has_a_limit_and_its_system_text_apart() -> None:
    assert messages("Hi", system="Be kind.", tools=(ADD,)) == {
        "model": "some-model",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "stream": True,
        "system": "Be kind.",
        "tools": [{"name": "add", "description": "Adds.", "input_schema": ADD.parameters}],
    }
    assert messages("Hi", max_output_tokens=9)["max_tokens"] == 9


def test_a_call_and_its_result_stand_next_to_each_other() -> None:
    turns = ("Add", AssistantTurn(blocks=(TextBlock(text="Adding."), CALL)), result("2"), "Thanks")

    assert chat(*turns)["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Adding.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "user", "content": "Thanks"},
    ]
    assert messages(*turns)["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Adding."},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "2"},
                {"type": "text", "text": "Thanks"},
            ],
        },
    ]


def test_calls_come_after_the_text_of_their_turn() -> None:
    turns = ("Add", AssistantTurn(blocks=(CALL, TextBlock(text="more"))), result("2"))

    content = messages(*turns)["messages"][1]["content"]

    assert [block["type"] for block in content] == ["text", "tool_use"]


def test_a_failed_result_says_so() -> None:
    turns = ("Add", AssistantTurn(blocks=(CALL,)), result("no", failed=True))

    assert chat(*turns)["messages"][-1]["content"] == "Error: no"
    assert messages(*turns)["messages"][-1]["content"][0]["is_error"] is True


def test_an_empty_result_says_that_it_is_empty() -> None:
    turns = ("Add", AssistantTurn(blocks=(CALL,)), result(" \n"))

    assert chat(*turns)["messages"][-1]["content"] == "(no output)"
    assert messages(*turns)["messages"][-1]["content"][0]["content"] == "(no output)"


def test_neighbours_of_one_role_become_one_message() -> None:
    turns = ("a", "b", said("c"), said("d"), UserTurn(origin="notice", text="e"), "f")

    assert [each["role"] for each in messages(*turns)["messages"]] == ["user", "assistant", "user"]
    assert [each["content"] for each in chat(*turns)["messages"]] == ["a\n\nb", "c\n\nd", "e\n\nf"]


def test_thinking_goes_back_as_it_came_or_not_at_all() -> None:
    blocks: tuple[AssistantBlock, ...] = (
        ReasoningBlock(text="signed", replay={"signature": "sig"}),
        ReasoningBlock(text="", replay={"redacted": "data"}),
        ReasoningBlock(text="cut"),
        TextBlock(text="Answer"),
    )

    content = messages("Q", AssistantTurn(blocks=blocks), "Next")["messages"][1]["content"]

    assert content == [
        {"type": "thinking", "thinking": "signed", "signature": "sig"},
        {"type": "redacted_thinking", "data": "data"},
        {"type": "text", "text": "Answer"},
    ]


def test_reasoning_alone_is_no_message() -> None:
    turn = AssistantTurn(blocks=(ReasoningBlock(text="hm", replay={"signature": "sig"}),))

    assert [each["role"] for each in messages("a", turn, "b")["messages"]] == ["user"]
    assert chat("a", turn, "b")["messages"] == [{"role": "user", "content": "a\n\nb"}]


def test_reasoning_that_a_server_wants_back_goes_with_its_calls() -> None:
    thought = ReasoningBlock(text="plan", replay={"field": "reasoning_content"})
    body = CHAT.encode(request("Q", AssistantTurn(blocks=(thought, CALL)), result("2")))

    assert body["messages"][1]["reasoning_content"] == "plan"  # type: ignore[index, call-overload]


def test_details_of_reasoning_go_back_as_they_came() -> None:
    details: list[Any] = [{"type": "reasoning.text", "text": "plan", "signature": "s"}]
    thought = ReasoningBlock(text="plan", replay={"field": "reasoning_details", "details": details})
    body: Any = CHAT.encode(request("Q", AssistantTurn(blocks=(thought, TextBlock(text="A"))), "Next"))

    assert body["messages"][1] == {"role": "assistant", "content": "A", "reasoning_details": details}


@pytest.mark.parametrize("call_id", ["c" * 41, "call:1", "", "ünï"])
def test_an_id_that_a_provider_refuses_is_mapped_alike_for_call_and_result(call_id: str) -> None:
    call = CallBlock(call_id=call_id, name="a b", input={})
    body = messages("Q", AssistantTurn(blocks=(call,)), result("2", call_id=call_id))

    use = body["messages"][1]["content"][0]
    answer = body["messages"][2]["content"][0]
    assert use["id"] == answer["tool_use_id"]
    assert call_ids.common(use["id"]) == use["id"]
    assert use["name"] == "a_b"


@pytest.mark.parametrize("rule", [call_ids.common, call_ids.nine, call_ids.hosted])
def test_ids_that_begin_alike_stay_apart_and_mapped_ones_stay_as_they_are(rule: CallIdRule) -> None:
    given = [f"{'x' * 70}{n}" for n in range(100)] + ["a b", "a_b", "a:b", "", " "]

    mapped = [rule(each) for each in given]

    assert len(set(mapped)) == len(given)
    assert [rule(each) for each in mapped] == mapped


def test_mistral_gets_ids_of_nine_characters_and_no_user_right_after_a_tool() -> None:
    turns = (
        "Add",
        AssistantTurn(blocks=(CALL, CallBlock(call_id="abcdefgh9", name="add", input={}))),
        result("2"),
        result("3", call_id="abcdefgh9"),
        "Thanks",
    )
    body: Any = openai_chat.ChatCompletions(limit_field="max_tokens", is_mistral=True).encode(request(*turns))

    _, assistant, first, second, between, last = body["messages"]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]] == [call_ids.nine("c1"), "abcdefgh9"]
    assert (between["role"], last["role"]) == ("assistant", "user")


def test_a_request_with_calls_and_without_tools_brings_definitions_that_may_not_be_called() -> None:
    turns = ("Add", AssistantTurn(blocks=(CALL, CALL)), result("2"), result("2"))

    body = messages(*turns)

    assert [tool["name"] for tool in body["tools"]] == ["add"]
    assert body["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in messages(*turns, tools=(ADD,))
    assert "tools" not in messages("Hi")
    assert "tools" not in chat(*turns)


SEARCH = CallBlock(
    call_id="srvtoolu_1",
    name="web_search",
    input={"query": "weather"},
    hosted=True,
    result=HostedResult(
        output="Sunny.",
        replay={"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ),
)
HOSTED = AssistantTurn(blocks=(SEARCH, TextBlock(text="It is sunny.")))


def test_tools_that_the_provider_runs_are_offered_as_the_agent_wrote_them() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}

    sent = messages("Hi", tools=(ADD,), hosted_tools=(search,))["tools"]

    assert [tool["name"] for tool in sent] == ["add", "web_search"]
    assert sent[1] == search


def test_a_hosted_call_goes_back_to_anthropic_with_its_result_beside_it() -> None:
    assert messages("Weather?", HOSTED, "Thanks")["messages"][1]["content"] == [
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "weather"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "It is sunny."},
    ]


def test_a_hosted_call_whose_id_was_mapped_is_mapped_in_its_result_too() -> None:
    content = messages(
        "Weather?", AssistantTurn(blocks=(SEARCH.model_copy(update={"call_id": "ws:1"}),)), "Thanks"
    )["messages"][1]["content"]

    assert content[0]["id"] == content[1]["tool_use_id"] == call_ids.hosted("ws:1")


def test_a_hosted_call_of_a_connected_server_keeps_its_own_type_and_fields() -> None:
    call = SEARCH.model_copy(update={"replay": {"type": "mcp_tool_use", "server_name": "notes"}})
    body: Any = MESSAGES.encode(request("Weather?", AssistantTurn(blocks=(call,)), "Thanks"))

    use = body["messages"][1]["content"][0]
    assert (use["type"], use["server_name"]) == ("mcp_tool_use", "notes")


def test_a_hosted_call_is_told_in_words_where_it_has_no_place() -> None:
    note = '[web_search was run by the provider with {"query": "weather"}. Its result: Sunny.]'
    bare = SEARCH.model_copy(update={"result": HostedResult(output="Sunny.")})

    assert chat("Weather?", HOSTED, "Thanks")["messages"][1] == {
        "role": "assistant",
        "content": f"{note}\n\nIt is sunny.",
    }
    assert messages("Weather?", AssistantTurn(blocks=(bare,)), "Thanks")["messages"][1]["content"] == [
        {"type": "text", "text": note}
    ]


def test_headers_carry_key_and_attempt() -> None:
    assert CHAT.headers(key="k", attempt=ATTEMPT) == {
        "authorization": "Bearer k",
        "x-client-request-id": ATTEMPT,
    }
    assert MESSAGES.headers(key="k", attempt=ATTEMPT) == {
        "x-api-key": "k",
        "anthropic-version": "2023-06-01",
        "x-client-request-id": ATTEMPT,
    }
    assert "authorization" not in CHAT.headers(key=None, attempt=ATTEMPT)


WORDS = st.sampled_from(["", " ", "a", "Grüße 🌍", "x\ny"])
BLOCKS = st.one_of(
    WORDS.map(lambda text: TextBlock(text=text)),
    WORDS.map(lambda text: ReasoningBlock(text=text, replay={"signature": "s"})),
    st.integers(0, 3).map(lambda n: CallBlock(call_id=f"c{n}", name="add", input={"n": n})),
)
TURNS = st.lists(
    st.one_of(
        WORDS.map(lambda text: UserTurn(text=text)),
        st.lists(BLOCKS, max_size=4).map(lambda blocks: AssistantTurn(blocks=tuple(blocks))),
        WORDS.map(lambda text: ResultTurn(call_id="c1", name="add", output=text)),
    ),
    max_size=8,
).map(tuple)


@given(TURNS)
def test_any_turns_alternate_start_and_end_with_the_user_and_hold_nothing_empty(
    turns: tuple[Turn, ...],
) -> None:
    asked = port.ModelRequest(attempt=ATTEMPT, model="m", turns=turns)
    body: Any = MESSAGES.encode(asked)

    roles = [message["role"] for message in body["messages"]]
    assert roles[0] == roles[-1] == "user"
    assert all(one != next_one for one, next_one in pairwise(roles))
    for message in body["messages"]:
        assert message["content"]
        assert all(block.get("text", "x").strip() for block in message["content"])
        assert message["content"][-1]["type"] != "thinking"
    assert accepted(ANTHROPIC_TYPE, body) == body


@given(TURNS)
def test_any_turns_make_a_chat_request_that_is_the_same_every_time(turns: tuple[Turn, ...]) -> None:
    asked = port.ModelRequest(attempt=ATTEMPT, model="m", turns=turns)
    body: Any = CHAT.encode(asked)

    assert json.dumps(body) == json.dumps(CHAT.encode(asked))
    assert accepted(OPENAI_TYPE, body) == body
    assert body["messages"][0]["role"] in ("user", "tool")
    assert body["messages"][-1]["role"] in ("user", "tool")
    for message in body["messages"]:
        assert message["content"] or message.get("tool_calls")
