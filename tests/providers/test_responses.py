"""The Responses API: what is sent, what is kept of an answer, and what of it goes back."""

import json
from typing import Any

from hypothesis import given
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from schema.turns import (
    AssistantBlock,
    AssistantTurn,
    CallBlock,
    HostedResult,
    ReasoningBlock,
    TextBlock,
    ToolDefinition,
    Turn,
)
from sessions_app.providers import openai_responses, port
from tests.history import validators
from tests.providers.asking import ATTEMPT, Result, play, request, response_reader, result
from tests.providers.response_fixtures import (
    CREATED,
    SEARCH,
    added,
    call,
    done,
    ended,
    message,
    said,
    thought,
)
from tests.providers.test_encoding import TURNS, accepted

KEPT = openai_responses.Responses(is_background=True)
NOT_KEPT = openai_responses.Responses(is_background=False)
TYPE: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsStreaming)
ADD = ToolDefinition(name="add", description="Adds.", parameters={"type": "object", "properties": {}})


def encoded(*turns: Turn | str, **fields: Any) -> Any:
    body = KEPT.encode(request(*turns, **fields))
    assert accepted(TYPE, body) == body
    validators.responses(body)
    return body


def test_a_request_is_kept_and_runs_in_the_background() -> None:
    assert encoded("Hi", system="Be kind.", tools=(ADD,), max_output_tokens=50) == {
        "model": "some-model",
        "input": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "store": True,
        "background": True,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be kind.",
        "tools": [
            {
                "type": "function",
                "name": "add",
                "description": "Adds.",
                "parameters": ADD.parameters,
                "strict": False,
            }
        ],
        "max_output_tokens": 50,
    }


def test_tools_that_the_provider_runs_are_offered_as_the_agent_wrote_them() -> None:
    search = {"type": "web_search", "search_context_size": "low"}

    sent = encoded("Hi", tools=(ADD,), hosted_tools=(search,))["tools"]

    assert [tool["type"] for tool in sent] == ["function", "web_search"]
    assert sent[1] == search


def test_without_background_nothing_is_kept_there() -> None:
    body = NOT_KEPT.encode(request())

    assert body["store"] is False
    assert "background" not in body


def test_a_model_that_never_reasons_is_not_asked_for_its_reasoning() -> None:
    assert "include" not in KEPT.encode(request(model="gpt-4.1"))


def test_a_call_and_its_result_are_items_of_their_own() -> None:
    made = CallBlock(call_id="c" * 60, name="add it", input={"a": 1})
    turns = (
        "Add",
        AssistantTurn(blocks=(TextBlock(text="Adding."), made)),
        result("no", call_id="c" * 60, failed=True),
        "Thanks",
    )

    items = encoded(*turns)["input"]

    assert items[1] == {"type": "message", "role": "assistant", "content": "Adding."}
    assert items[2]["name"] == "add_it"
    assert items[2]["arguments"] == '{"a":1}'
    assert items[2]["call_id"] == items[3]["call_id"] != "c" * 60
    assert items[3]["output"] == "Error: no"
    assert items[4] == {"role": "user", "content": "Thanks"}


async def came_back(*frames: bytes) -> AssistantTurn:
    """The assistant's turn that an answer becomes when all of it is kept."""
    came = await play(response_reader(), CREATED, *frames)
    assert came.outcome == "completed"
    return AssistantTurn(blocks=tuple(blocks_of(came)))


def blocks_of(came: Result) -> list[AssistantBlock]:
    texts: dict[str, str] = {}
    blocks: dict[str, AssistantBlock] = {}
    results = {item.key: item for item in came.items if isinstance(item, port.CallResult)}
    for item in came.items:
        match item:
            case port.TextDelta() | port.ReasoningDelta():
                texts[item.key] = texts.get(item.key, "") + item.text
            case port.CallDelta():
                texts[item.key] = texts.get(item.key, "") + item.arguments
            case port.CallStarted():
                blocks[item.key] = CallBlock(
                    call_id=item.call_id, name=item.name, input={}, hosted=item.hosted
                )
            case port.PartClosed(key=key, replay=replay):
                blocks[key] = _block(key, texts.get(key, ""), dict(replay), blocks.get(key), results.get(key))
    return list(blocks.values())


def _block(key: str, words: str, replay: Any, begun: Any, told: port.CallResult | None) -> AssistantBlock:
    if key.startswith("text"):
        return TextBlock(text=words, replay=replay)
    if key.startswith("reasoning"):
        return ReasoningBlock(text=words, replay=replay)
    returned = None if told is None else HostedResult(output=told.output, replay=dict(told.replay))
    changed = {"input": json.loads(words or "{}"), "replay": replay, "result": returned}
    made: CallBlock = begun.model_copy(update=changed)
    return made


async def test_an_answer_goes_back_item_by_item_as_it_came() -> None:
    turn = await came_back(
        done(thought("")),
        done(message("Adding.", 1, phase="commentary"), 1),
        done(call('{"a":1}', 2), 2),
        ended(),
    )

    items = encoded("Add", turn, result("2", call_id="call_2"))["input"][1:4]

    assert items == [
        {"type": "reasoning", "id": "it_0", "summary": [], "encrypted_content": "x"},
        message("Adding.", 1, phase="commentary"),
        {
            "type": "function_call",
            "id": "it_2",
            "call_id": "call_2",
            "name": "add",
            "arguments": '{"a":1}',
        },
    ]


async def test_what_followed_a_thought_goes_back_without_its_id_when_the_thought_stays_behind() -> None:
    whole = await came_back(done(thought()), done(message("Hi", 1), 1), ended())

    (item,) = encoded("Q", AssistantTurn(blocks=whole.blocks[1:]), "Next")["input"][1:2]

    assert item == {"type": "message", "role": "assistant", "content": "Hi"}


async def test_calls_stay_where_they_were_so_that_each_follows_its_thought() -> None:
    turn = await came_back(done(thought()), done(call("{}", 1), 1), done(message("Done.", 2), 2), ended())

    items = encoded("Q", turn, result("2", call_id="call_1"))["input"]

    assert [item.get("type", "message") for item in items] == [
        "message",
        "reasoning",
        "function_call",
        "message",
        "function_call_output",
    ]


async def test_a_hosted_call_goes_back_as_the_item_it_was() -> None:
    turn = await came_back(
        added({"type": "web_search_call", "id": "ws_1", "status": "in_progress"}),
        done(SEARCH),
        said("output_text", "Sunny.", 1),
        ended(),
    )

    assert encoded("Weather?", turn, "Thanks")["input"][1] == SEARCH


async def test_a_hosted_call_without_its_thought_is_told_in_words() -> None:
    whole = await came_back(done(thought()), done(SEARCH, 1), done(message("Sunny.", 2), 2), ended())

    item = encoded("Weather?", AssistantTurn(blocks=whole.blocks[1:]), "Thanks")["input"][1]

    assert item["content"].startswith("[web_search was run by the provider")


async def test_a_hosted_call_that_failed_or_whose_end_was_not_told_has_no_result_to_send_back() -> None:
    failed = await play(
        response_reader(),
        CREATED,
        done(
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "name": "look",
                "server_label": "notes",
                "arguments": '{"a": 1}',
                "error": "It is gone.",
            }
        ),
        ended(),
    )
    cut = await play(
        response_reader(), CREATED, added(SEARCH | {"status": "in_progress"}), ended(status="incomplete")
    )

    assert failed.calls == [("mcp_1", "look", '{"a": 1}')]
    assert [item for item in failed.items if isinstance(item, port.CallResult)] == [
        port.CallResult("call:0", "It is gone.", is_error=True)
    ]
    assert not [item for item in cut.items if isinstance(item, port.CallResult)]


async def test_an_image_is_not_kept_to_be_sent_back() -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "A" * 100_000}

    came = await play(response_reader(), CREATED, done(image), ended())

    (told,) = [item for item in came.items if isinstance(item, port.CallResult)]
    assert told.replay == {}
    assert len(told.output) < 20_000


def test_headers_carry_key_and_attempt() -> None:
    assert KEPT.headers(key="k", attempt=ATTEMPT) == {
        "authorization": "Bearer k",
        "x-client-request-id": ATTEMPT,
    }
    assert "authorization" not in KEPT.headers(key=None, attempt=ATTEMPT)


@given(TURNS)
def test_any_turns_make_a_request_that_the_sdk_knows_and_that_ends_with_the_user(
    turns: tuple[Turn, ...],
) -> None:
    body: Any = KEPT.encode(port.ModelRequest(attempt=ATTEMPT, model="m", turns=turns))

    assert accepted(TYPE, body) == body
    assert body["input"][-1].get("role") == "user" or body["input"][-1]["type"] == "function_call_output"
