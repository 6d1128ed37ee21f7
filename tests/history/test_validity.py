"""Whatever happened, the next request is one that the provider accepts, and nothing that counts is left out."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema.ids import AttemptId
from schema.turns import AssistantTurn, ToolDefinition, Turn, UserTurn
from sessions_app.history import lower
from sessions_app.history.entries import Entry
from sessions_app.providers import anthropic, openai_chat, openai_responses, port
from tests.history import validators
from tests.history.transcripts import MODELS, transcripts

ADD = ToolDefinition(name="add", description="Adds.", parameters={"type": "object", "properties": {}})
any_model = st.sampled_from(MODELS)
often = settings(max_examples=150, deadline=None)


@dataclass(frozen=True, kw_only=True)
class Format:
    """One wire format: how ours is made, and who refuses it."""

    encode: Callable[[port.ModelRequest], dict[str, Any]]
    validate: Callable[[dict[str, Any]], None]
    spoken: str = "messages"


FORMATS = {
    "chat": Format(
        encode=openai_chat.ChatCompletions(limit_field="max_tokens").encode, validate=validators.chat
    ),
    "mistral": Format(
        encode=openai_chat.ChatCompletions(limit_field="max_tokens", is_mistral=True).encode,
        validate=partial(validators.chat, mistral=True),
    ),
    "anthropic": Format(encode=anthropic.Messages().encode, validate=validators.messages),
    "responses": Format(
        encode=openai_responses.Responses(is_background=True).encode,
        validate=validators.responses,
        spoken="input",
    ),
    "responses, not kept": Format(
        encode=openai_responses.Responses(is_background=False).encode,
        validate=validators.responses,
        spoken="input",
    ),
}
EVERY_FORMAT = pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS.keys())


def encoded(wire: Format, turns: tuple[Turn, ...], *, has_tools: bool = True) -> dict[str, Any]:
    return wire.encode(
        port.ModelRequest(
            attempt=AttemptId("att_000000000001"),
            model="m",
            turns=turns,
            system="Be kind.",
            tools=(ADD,) if has_tools else (),
        )
    )


@EVERY_FORMAT
@given(history=transcripts, model=any_model, is_last_step=st.booleans())
@often
def test_any_history_makes_a_request_that_is_accepted(
    wire: Format, history: tuple[Entry, ...], model: str, is_last_step: bool
) -> None:
    turns = lower(history, model=model, is_last_step=is_last_step)

    wire.validate(encoded(wire, turns, has_tools=not is_last_step))


@EVERY_FORMAT
@given(history=transcripts, model=any_model)
@often
def test_a_history_that_grows_keeps_the_beginning_of_its_request(
    wire: Format, history: tuple[Entry, ...], model: str
) -> None:
    """All but the last message, which may have grown, and ends with a word of ours where none was said."""
    whole = encoded(wire, lower(history, model=model))[wire.spoken]
    for length in range(len(history)):
        before = encoded(wire, lower(history[:length], model=model))[wire.spoken][:-1]
        assert whole[: len(before)] == before


@EVERY_FORMAT
@given(history=transcripts, model=any_model)
@often
def test_the_same_history_makes_the_same_request(
    wire: Format, history: tuple[Entry, ...], model: str
) -> None:
    first, second = (encoded(wire, lower(copy.deepcopy(history), model=model)) for _ in range(2))

    assert json.dumps(first) == json.dumps(second)


@given(history=transcripts, model=any_model)
@often
def test_every_visible_word_goes_back_in_its_order(history: tuple[Entry, ...], model: str) -> None:
    expected = [
        words
        for entry in history
        for words in (
            [entry.text]
            if entry.type != "assistant"
            else [part.text for part in entry.parts if part.kind == "text"]
        )
        if words.strip()
    ]
    told = [
        words
        for turn in lower(history, model=model)
        for words in (
            [block.text for block in turn.blocks if block.kind == "text"]
            if isinstance(turn, AssistantTurn)
            else [turn.text]
            if isinstance(turn, UserTurn) and turn.origin != "notice"
            else []
        )
    ]
    assert told == expected
