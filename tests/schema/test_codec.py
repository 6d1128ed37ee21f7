"""Events to stored data and back: whole, or refused by name."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies
from pydantic import JsonValue, ValidationError

from schema import codec
from schema.events import (
    MANIFEST,
    RESERVED,
    EventData,
    PromptWithdrawn,
    SessionUpdated,
    StepFailed,
    TextEnded,
)
from tests.schema.values import any_of

any_event = strategies.sampled_from(MANIFEST).flatmap(any_of)


@settings(max_examples=400, deadline=None)
@given(event=any_event)
def test_every_event_comes_back_equal_through_stored_json(event: EventData) -> None:
    stored = json.loads(json.dumps(codec.encode(event)))

    assert codec.decode(event_type=event.type, version=event.version, data=stored) == event


@settings(max_examples=200, deadline=None)
@given(event=any_event)
def test_what_is_absent_is_not_stored(event: EventData) -> None:
    stored = codec.encode(event)

    assert set(stored) == {name for name, value in event if value is not None}


def test_absent_is_not_the_same_as_empty_or_false() -> None:
    assert codec.encode(SessionUpdated(title="", archived=False, recovery_policy="")) == {
        "title": "",
        "archived": False,
        "recovery_policy": "",
    }
    assert codec.encode(SessionUpdated()) == {}


def test_null_inside_what_a_provider_wants_back_is_kept() -> None:
    replay: dict[str, JsonValue] = {"id": None, "parts": [None, {"signature": None}]}

    stored = codec.encode(TextEnded(message="msg_1", part="prt_1", text="", replay=replay))

    assert stored["replay"] == replay


@pytest.mark.parametrize("event_type", ["session.renamed", "", "Session.created", *sorted(RESERVED)])
def test_an_unknown_type_is_refused_by_name(event_type: str) -> None:
    with pytest.raises(codec.UnknownEventType) as refused:
        codec.decode(event_type=event_type, version=1, data={})

    assert refused.value.event_type == event_type
    assert repr(event_type) in str(refused.value)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_version_that_is_not_known_is_refused_with_the_newest_that_is(version: int) -> None:
    with pytest.raises(codec.UnknownEventVersion) as refused:
        codec.decode(event_type="prompt.withdrawn", version=version, data={"message": "msg_1"})

    assert (refused.value.event_type, refused.value.version) == ("prompt.withdrawn", version)
    assert "up to 1" in str(refused.value)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({}, "message"),
        ({"message": 7}, "message"),
        ({"message": None}, "message"),
        ({"message": "msg_1", "colour": "crimson"}, "colour"),
        ([], "data"),
    ],
)
def test_malformed_data_is_refused_and_names_the_place_but_not_the_content(data: Any, where: str) -> None:
    with pytest.raises(codec.MalformedEvent) as refused:
        codec.decode(event_type="prompt.withdrawn", version=1, data=data)

    assert f"malformed: {where}:" in str(refused.value)
    assert "crimson" not in str(refused.value)


def test_a_word_outside_its_vocabulary_is_malformed() -> None:
    data = {"message": "msg_1", "outcome": "completed", "error": {"reason": "cut", "message": "Cut."}}

    with pytest.raises(codec.MalformedEvent, match="outcome"):
        codec.decode(event_type=StepFailed.type, version=1, data=data)  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(event=any_event, name=strategies.text(min_size=1))
def test_a_field_that_nobody_knows_is_never_ignored(event: EventData, name: str) -> None:
    if name in type(event).model_fields:
        return

    with pytest.raises(codec.MalformedEvent):
        codec.decode(event_type=event.type, version=event.version, data={**codec.encode(event), name: 1})


def test_an_event_cannot_be_changed_once_it_is_made() -> None:
    event = PromptWithdrawn(message="msg_1")

    with pytest.raises(ValidationError, match="frozen"):
        event.message = "msg_2"  # type: ignore[misc]


def test_an_error_names_the_field_and_never_repeats_what_was_in_it() -> None:
    with pytest.raises(ValidationError, match="message") as refused:
        PromptWithdrawn.model_validate({"message": ["a secret"], "more": "another secret"})

    assert "secret" not in str(refused.value)
