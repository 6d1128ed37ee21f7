"""The readers on answers of many servers: what each comes to, whole, split anywhere, and cut anywhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.providers import port
from sessions_app.providers.transport import Broken
from tests.providers import fixtures, response_fixtures
from tests.providers.asking import Result, chat_reader, message_reader, play, response_reader
from tests.providers.fixtures import Answer

ALL = (*fixtures.ALL, *response_fixtures.RESPONSES)
ANSWERS = pytest.mark.parametrize("answer", ALL, ids=str)


def summary(came: Result) -> Any:
    """All that matters of a result; how the text was cut into fragments does not."""
    closed = [item.key for item in came.items if isinstance(item, port.PartClosed)]
    return (came.outcome, came.reason, came.finish, came.text, came.reasoning, came.calls, came.usage, closed)


@ANSWERS
async def test_an_answer_comes_to_what_it_says(answer: Answer) -> None:
    came = await play(answer.reader(), *answer.frames)

    assert (came.outcome, came.reason) == (answer.outcome, answer.reason)
    assert came.finish == answer.finish
    assert came.text == answer.text
    assert came.reasoning == answer.reasoning
    assert tuple(came.calls) == answer.calls
    last = came.items[-1] if came.items else None
    assert (last.usage if isinstance(last, port.Finished) else came.usage) == answer.usage


@ANSWERS
async def test_one_byte_at_a_time_gives_the_same(answer: Answer) -> None:
    whole = b"".join(answer.frames)

    came = await play(answer.reader(), *(whole[i : i + 1] for i in range(len(whole))))

    assert summary(came) == summary(await play(answer.reader(), whole))


@given(answer=st.sampled_from(ALL), data=st.data())
async def test_any_split_gives_the_same(answer: Answer, data: st.DataObject) -> None:
    whole = b"".join(answer.frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert summary(await play(answer.reader(), *pieces)) == summary(
        await play(answer.reader(), *answer.frames)
    )


CLASSES = {"p": "partial", "C": "completed", "F": "failed", "R": "rejected"}
FORMATS = {
    "chat completions": fixtures.CHAT,
    "messages": fixtures.MESSAGES,
    "responses": response_fixtures.RESPONSES,
}


def cuts() -> dict[tuple[str, str], str]:
    """The table of what each cut proves, by format and answer."""
    table = {}
    title = ""
    for line in (Path(__file__).parent / "cuts.txt").read_text().splitlines():
        if line.startswith("["):
            title = line.strip("[]")
        elif line and not line.startswith("#"):
            letters, _, name = line.partition(" ")
            table[title, name.strip()] = letters
    return table


CUTS = cuts()


def test_the_table_of_cuts_holds_every_answer_once() -> None:
    named = [(title, answer.name) for title, answers in FORMATS.items() for answer in answers]

    assert sorted(named) == sorted(CUTS)


@pytest.mark.parametrize(
    "end", [None, Broken("disconnected", "reset"), Broken("timeout", "stalled")], ids=str
)
@pytest.mark.parametrize("title", FORMATS)
async def test_a_cut_after_any_frame_proves_what_the_table_says(title: str, end: Broken | None) -> None:
    for answer in FORMATS[title]:
        proved = [
            await play(answer.reader(), *answer.frames[:count], end=end)
            for count in range(len(answer.frames))
        ]
        proved.append(await play(answer.reader(), *answer.frames))

        said = [CLASSES[letter] for letter in CUTS[title, answer.name]]
        assert [came.outcome for came in proved] == said, answer.name
        for came in proved:
            assert (came.outcome == "completed") == (came.finish is not None)


@given(answer=st.sampled_from(ALL), data=st.data())
async def test_a_cut_inside_a_frame_gives_the_class_of_the_last_whole_frame(
    answer: Answer, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(answer.frames) - 1))
    frame = answer.frames[count]
    length = data.draw(st.integers(0, max(0, len(frame.rstrip(b"\r\n")) - 1)))
    reset = Broken("disconnected", "reset")

    came = await play(answer.reader(), *answer.frames[:count], frame[:length], end=reset)
    before = await play(answer.reader(), *answer.frames[:count], end=reset)

    assert (came.outcome, came.finish, came.text) == (before.outcome, before.finish, before.text)


@pytest.mark.parametrize("end", [Broken("disconnected", "reset"), Broken("timeout", "stalled")], ids=str)
async def test_what_breaks_after_the_finish_is_forgiven(end: Broken) -> None:
    came = await play(chat_reader(), fixtures.delta(content="Hi"), fixtures.STOP, end=end)

    assert came.outcome == "completed"
    assert came.finish == "stop"


async def test_every_part_has_its_own_key_and_is_closed_once() -> None:
    came = await play(
        chat_reader(),
        fixtures.delta(reasoning="plan"),
        fixtures.delta(content="Hi"),
        fixtures.delta(reasoning="again"),
        fixtures.delta(content=" you"),
        fixtures.call_delta(fixtures.entry("f", "{}", call_id="x", index=0)),
        fixtures.delta("tool_calls"),
    )

    assert came.text == "Hi you"
    assert [item.key for item in came.items if isinstance(item, port.PartClosed)] == [
        "reasoning:0",
        "reasoning:1",
        "text",
        "call:0",
    ]
    assert isinstance(came.items[-1], port.Finished)


async def test_the_response_is_identified_once() -> None:
    chat = await play(chat_reader(), fixtures.delta(content="a"), fixtures.delta(content="b"), fixtures.STOP)
    message = await play(message_reader(), fixtures.START, *fixtures.HI, *fixtures.END)
    response = await play(response_reader(), *response_fixtures.RESPONSES[0].frames)

    assert [item for item in chat.items if isinstance(item, port.ResponseIdentified)] == [
        port.ResponseIdentified("c")
    ]
    assert message.items[0] == port.ResponseIdentified("msg_1")
    assert [item for item in response.items if isinstance(item, port.ResponseIdentified)] == [
        port.ResponseIdentified("resp_1")
    ]


async def test_a_signature_is_kept_for_thinking_that_arrived_unchanged() -> None:
    def thinking(text: str) -> list[bytes]:
        return [
            fixtures.START,
            fixtures.block(0, "thinking", thinking=""),
            fixtures.block_delta("thinking_delta", thinking=text),
            fixtures.block_delta("signature_delta", signature="si"),
            fixtures.block_delta("signature_delta", signature="g"),
            fixtures.block_stop(),
            fixtures.block(1, text="Hi"),
            fixtures.block_stop(1),
            *fixtures.END,
        ]

    assert (await play(message_reader(), *thinking("plan"))).replay("reasoning:0") == {"signature": "sig"}
    assert (await play(message_reader(), *thinking("pl\x00an"))).replay("reasoning:0") == {}


async def test_thinking_that_was_cut_before_its_signature_has_none() -> None:
    came = await play(
        message_reader(),
        fixtures.START,
        fixtures.block(0, "thinking", thinking=""),
        fixtures.block_delta("thinking_delta", thinking="plan"),
        fixtures.block_stop(),
        *fixtures.HI,
        *fixtures.END,
    )

    assert came.replay("reasoning:0") == {}


async def test_redacted_thinking_is_a_part_that_can_be_sent_back() -> None:
    came = await play(
        message_reader(),
        fixtures.START,
        fixtures.block(7, "redacted_thinking", data="xyz"),
        fixtures.block_stop(7),
        *fixtures.HI,
        *fixtures.END,
    )

    assert came.replay("reasoning:7") == {"redacted": "xyz"}
    assert port.ReasoningDelta("reasoning:7", "") in came.items


def served(kind: str, result: dict[str, Any], **call: Any) -> list[bytes]:
    """An answer of Anthropic with one call that it ran."""
    return [
        fixtures.START,
        fixtures.block(0, kind, id="srvtoolu_1", name="look", input={}, **call),
        fixtures.block_delta("input_json_delta", 0, partial_json="{}"),
        fixtures.block_stop(0),
        fixtures.event("content_block_start", index=1, content_block={"tool_use_id": "srvtoolu_1"} | result),
        fixtures.block_stop(1),
        fixtures.block(2, text="Hi"),
        fixtures.block_stop(2),
        *fixtures.END,
    ]


def told(came: Result) -> port.CallResult:
    (result,) = [item for item in came.items if isinstance(item, port.CallResult)]
    return result


async def test_the_result_of_a_tool_that_anthropic_ran_is_kept_as_it_came() -> None:
    found: dict[str, Any] = {
        "type": "web_search_tool_result",
        "content": [{"title": "T", "url": "u", "encrypted": "x"}],
    }

    came = await play(message_reader(), *served("server_tool_use", found))

    assert told(came) == port.CallResult("call:0", "T u", replay={"tool_use_id": "srvtoolu_1", **found})
    assert came.replay("call:0") == {}


async def test_a_call_of_a_connected_server_keeps_which_one() -> None:
    found = {"type": "mcp_tool_result", "is_error": False, "content": [{"type": "text", "text": "Noted."}]}

    came = await play(message_reader(), *served("mcp_tool_use", found, server_name="notes"))

    assert came.replay("call:0") == {"type": "mcp_tool_use", "server_name": "notes"}
    assert (told(came).output, told(came).is_error) == ("Noted.", False)


@pytest.mark.parametrize(
    "result",
    [
        {
            "type": "web_search_tool_result",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
        {"type": "mcp_tool_result", "is_error": True, "content": []},
    ],
)
async def test_a_tool_that_failed_at_anthropic_failed(result: dict[str, Any]) -> None:
    assert told(await play(message_reader(), *served("server_tool_use", result))).is_error


async def test_a_result_of_a_call_that_nobody_made_is_skipped() -> None:
    came = await play(message_reader(), *served("surprise", {"type": "web_search_tool_result"}))

    assert came.text == "Hi"
    assert not [item for item in came.items if isinstance(item, port.CallResult)]


async def test_details_that_openrouter_wants_back_are_kept_as_they_came() -> None:
    came = await play(
        chat_reader(),
        fixtures.delta(
            reasoning="pl", reasoning_details=[{"type": "reasoning.text", "text": "pl", "index": 0}]
        ),
        fixtures.delta(
            reasoning="an", reasoning_details=[{"type": "reasoning.text", "text": "an", "index": 0}]
        ),
        fixtures.delta(reasoning_details=[{"type": "reasoning.text", "signature": "s", "index": 0}]),
        fixtures.delta("stop", content="x"),
    )

    assert came.replay("reasoning:0") == {
        "field": "reasoning_details",
        "details": [{"type": "reasoning.text", "index": 0, "text": "plan", "signature": "s"}],
    }


async def test_details_without_words_are_a_part_that_can_be_sent_back() -> None:
    hidden = {"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "index": 1}

    came = await play(
        chat_reader(),
        fixtures.delta(
            reasoning_details=[{"type": "reasoning.summary", "summary": "plan", "index": 0}, hidden]
        ),
        fixtures.delta(content="x"),
        fixtures.delta("stop", reasoning_details=[hidden]),
    )

    assert came.replay("reasoning:0")["details"] == [
        {"type": "reasoning.summary", "index": 0, "summary": "plan"},
        hidden,
    ]
    assert came.replay("reasoning:1")["details"] == [hidden]
    assert port.ReasoningDelta("reasoning:1", "") in came.items


async def test_reasoning_that_deepseek_wants_back_is_marked() -> None:
    marked = await play(
        chat_reader(), fixtures.delta(reasoning_content="p"), fixtures.delta("stop", content="x")
    )
    plain = await play(chat_reader(), fixtures.delta(reasoning="p"), fixtures.delta("stop", content="x"))

    assert marked.replay("reasoning:0") == {"field": "reasoning_content"}
    assert plain.replay("reasoning:0") == {}


NAMES = st.sampled_from(
    [
        "choices",
        "delta",
        "content",
        "index",
        "finish_reason",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "type",
        "message",
        "usage",
        "error",
        "content_block",
        "text",
        "thinking",
        "stop_reason",
        "data",
        "input",
        "item",
        "item_id",
        "output_index",
        "response",
        "status",
        "output",
        "summary",
        "action",
        "sequence_number",
    ]
)
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2,
        1.5,
        "",
        "x",
        "stop",
        "text",
        "tool_use",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_start",
        "text_delta",
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.completed",
        "message",
        "reasoning",
        "function_call",
        "web_search_call",
        "mcp_call",
        "completed",
        "<think>",
        "�",
        "{",
        [],
        {},
    ]
)
JSON = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
FRAMES = st.lists(
    JSON.map(lambda value: b"data: " + json.dumps(value).encode() + b"\n\n") | st.binary(max_size=30),
    max_size=5,
)


@given(frames=FRAMES, reader=st.sampled_from([chat_reader, message_reader, response_reader]))
async def test_no_answer_breaks_a_reader(frames: list[bytes], reader: Any) -> None:
    came = await play(reader(), *frames)

    assert came.outcome in ("completed", "failed", "partial", "rejected")
    for item in came.items:
        for value in vars(item).values():
            if isinstance(value, str):
                assert value.encode()
                assert "\x00" not in value


@given(answer=st.sampled_from(ALL), data=st.data())
async def test_no_damage_to_an_answer_breaks_a_reader(answer: Answer, data: st.DataObject) -> None:
    """Frames lost, repeated and swapped, bytes changed, pieces cut out."""
    frames = data.draw(st.lists(st.sampled_from(answer.frames), max_size=12))
    whole = bytearray(b"".join(frames))
    for _ in range(data.draw(st.integers(0, 4)) if whole else 0):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))

    came = await play(answer.reader(), bytes(whole))

    assert came.outcome in ("completed", "failed", "partial", "rejected")


@given(body=JSON, reader=st.sampled_from([chat_reader, message_reader, response_reader]))
async def test_no_document_breaks_a_reader(body: Any, reader: Any) -> None:
    came = await play(
        reader(),
        json.dumps(
            {"choices": body, "type": "message", "content": body, "status": "completed", "output": body}
        ).encode(),
    )

    assert came.outcome in ("completed", "failed", "partial", "rejected")
