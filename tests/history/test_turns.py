"""Lowering: whatever happened, what is sent next satisfies every provider's rules, and tells the truth."""

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from schema.turns import (
    AssistantBlock,
    AssistantTurn,
    CallBlock,
    HostedResult,
    ReasoningBlock,
    ResultTurn,
    TextBlock,
    Turn,
    UserTurn,
)
from sessions_app.history import lower, notices, verdicts
from sessions_app.history.entries import Entry, PartEntry
from tests.history.transcripts import (
    CUT,
    MODEL,
    MODELS,
    ONLY_BEGUN,
    UNKNOWN,
    answer,
    call,
    decision,
    reasoning,
    text,
    transcripts,
    user,
)

any_model = strategies.sampled_from(MODELS)


# The provider's rules, for any history


def broken_rules(turns: Sequence[Turn]) -> list[str]:
    """What an exacting provider would refuse in these turns."""
    blocks = [block for turn in turns if isinstance(turn, AssistantTurn) for block in turn.blocks]
    return [*_ends(turns), *_neighbours(turns), *_pairs(turns), *_empties(turns, blocks), *_calls(blocks)]


def _ends(turns: Sequence[Turn]) -> Iterator[str]:
    if not turns or not isinstance(turns[0], UserTurn):
        yield "does not begin with the user"
    if turns and isinstance(turns[-1], AssistantTurn):
        yield "ends with the assistant"


def _neighbours(turns: Sequence[Turn]) -> Iterator[str]:
    for before, turn in pairwise(turns):
        if isinstance(before, AssistantTurn) and isinstance(turn, AssistantTurn):
            yield "two turns of the assistant in a row"


def _pairs(turns: Sequence[Turn]) -> Iterator[str]:
    """Each local call has one result, right after its turn and in the order of the calls."""
    unanswered: list[tuple[str, str]] = []
    for turn in turns:
        if isinstance(turn, ResultTurn):
            expected = unanswered.pop(0) if unanswered else None
            if expected != (turn.call_id, turn.name):
                yield f"a result without its call: {turn.call_id}"
            continue
        yield from [f"a call without a result: {call_id}" for call_id, _ in unanswered]
        unanswered = [] if isinstance(turn, UserTurn) else _local_calls(turn)
    yield from [f"a call without a result: {call_id}" for call_id, _ in unanswered]


def _local_calls(turn: AssistantTurn) -> list[tuple[str, str]]:
    calls = [block for block in turn.blocks if isinstance(block, CallBlock)]
    return [(block.call_id, block.name) for block in calls if not block.hosted]


def _empties(turns: Sequence[Turn], blocks: Sequence[AssistantBlock]) -> Iterator[str]:
    said = [turn.text for turn in turns if isinstance(turn, UserTurn)]
    said += [turn.output for turn in turns if isinstance(turn, ResultTurn)]
    said += [block.text for block in blocks if isinstance(block, TextBlock)]
    if not all(text.strip() for text in said):
        yield "an empty text"
    if any(isinstance(block, ReasoningBlock) and not block.replay for block in blocks):
        yield "unsigned reasoning"
    for turn in turns:
        if isinstance(turn, AssistantTurn) and (
            not turn.blocks or isinstance(turn.blocks[-1], ReasoningBlock)
        ):
            yield "a turn of the assistant that says nothing"


def _calls(blocks: Sequence[AssistantBlock]) -> Iterator[str]:
    calls = [block for block in blocks if isinstance(block, CallBlock)]
    ids = [block.call_id for block in calls]
    if len(set(ids)) < len(ids) or not all(call_id.strip() for call_id in ids):
        yield f"call ids that are empty or there twice: {ids}"
    if any(block.hosted is (block.result is None) for block in calls):
        yield "a result in the wrong place"


def test_the_validator_refuses_what_providers_refuse() -> None:
    """The judge of the tests below is judged first."""
    one_call = AssistantTurn(blocks=(CallBlock(call_id="c", name="n", input={}),))
    result = ResultTurn(call_id="c", name="n", output="ok")
    said = UserTurn(text="Hello")
    assert broken_rules([said, one_call, result]) == []
    wrong: list[list[Turn]] = [
        [],
        [one_call, result],
        [said, one_call],
        [said, one_call, said],
        [said, result],
        [said, one_call, result, result],
        [said, one_call, result, one_call, result],
        [said, AssistantTurn(blocks=()), said],
        [said, AssistantTurn(blocks=(TextBlock(text=" "),)), said],
        [said, AssistantTurn(blocks=(ReasoningBlock(text="r", replay={"s": 1}),)), said],
        [
            said,
            AssistantTurn(blocks=(TextBlock(text="a"),)),
            AssistantTurn(blocks=(TextBlock(text="b"),)),
            said,
        ],
    ]
    assert all(broken_rules(turns) for turns in wrong)


@settings(max_examples=300, deadline=None)
@given(entries=transcripts, model=any_model, is_last_step=strategies.booleans())
def test_any_history_satisfies_the_providers_rules(
    entries: tuple[Entry, ...], model: str, is_last_step: bool
) -> None:
    assert broken_rules(lower(entries, model=model, is_last_step=is_last_step)) == []


@settings(max_examples=200, deadline=None)
@given(entries=transcripts, model=any_model)
def test_lowering_changes_nothing_and_gives_the_same_every_time(
    entries: tuple[Entry, ...], model: str
) -> None:
    before = copy.deepcopy(entries)

    first, second = lower(entries, model=model), lower(entries, model=model)

    assert first == second
    assert entries == before


@settings(max_examples=150, deadline=None)
@given(entries=transcripts, more=transcripts, model=any_model)
def test_a_history_that_grew_begins_with_what_was_sent_before(
    entries: tuple[Entry, ...], more: tuple[Entry, ...], model: str
) -> None:
    earlier = list(lower(entries, model=model))
    if earlier[-1] == UserTurn(origin="notice", text=notices.GO_ON):
        earlier.pop()

    assert list(lower(entries + more, model=model)[: len(earlier)]) == earlier


@settings(max_examples=150, deadline=None)
@given(entries=transcripts, model=any_model)
def test_nothing_a_person_wrote_is_lost_or_moved(entries: tuple[Entry, ...], model: str) -> None:
    written = [entry.text for entry in entries if entry.type != "assistant" and entry.text.strip()]

    turns = lower(entries, model=model)

    assert [turn.text for turn in turns if isinstance(turn, UserTurn) and turn.origin != "notice"] == written


@settings(max_examples=150, deadline=None)
@given(entries=transcripts, model=any_model)
def test_each_local_call_gets_one_result_or_is_told_to_have_only_begun(
    entries: tuple[Entry, ...], model: str
) -> None:
    local = [part for entry in entries for part in entry.parts if part.kind == "tool" and not part.hosted]

    turns = lower(entries, model=model)

    results = sum(isinstance(turn, ResultTurn) for turn in turns)
    only_begun = sum(turn.text.count("had only begun") for turn in turns if isinstance(turn, UserTurn))
    assert results + only_begun == len(local)


@settings(max_examples=150, deadline=None)
@given(entries=transcripts, model=any_model)
def test_each_interrupted_or_unknown_step_is_told_also_without_any_part(
    entries: tuple[Entry, ...], model: str
) -> None:
    broken = [
        entry for entry in entries if entry.type == "assistant" and entry.state in ("interrupted", "unknown")
    ]

    turns = lower(entries, model=model)

    told = "\n".join(turn.text for turn in turns if isinstance(turn, UserTurn) and turn.origin == "notice")
    expected = [entry.notice if entry.notice.strip() else notices.notice_for(entry.state) for entry in broken]
    for notice in expected:
        assert told.count(notice) >= expected.count(notice)


@settings(max_examples=150, deadline=None)
@given(entries=transcripts, model=any_model)
def test_what_another_model_signed_never_goes_back(entries: tuple[Entry, ...], model: str) -> None:
    others = tuple(entry for entry in entries if entry.model != model)

    for turn in lower(others, model=model):
        if isinstance(turn, AssistantTurn):
            assert not any(isinstance(block, ReasoningBlock) for block in turn.blocks)
            assert not any(block.replay for block in turn.blocks if isinstance(block, TextBlock))


# Single rules


def test_an_empty_history_asks_to_go_on() -> None:
    assert lower((), model=MODEL) == (UserTurn(origin="notice", text=notices.GO_ON),)


def test_a_conversation_comes_back_as_it_was() -> None:
    turns = lower((user("One?"), answer(text("One.")), user("Two?")), model=MODEL)

    assert turns == (
        UserTurn(text="One?"),
        AssistantTurn(blocks=(TextBlock(text="One."),)),
        UserTurn(text="Two?"),
    )


def test_a_history_that_ends_with_an_answer_is_asked_to_go_on() -> None:
    turns = lower((user(), answer(text("Half"))), model=MODEL)

    assert turns[-1] == UserTurn(origin="notice", text=notices.GO_ON)


def test_an_answer_without_anything_in_it_is_left_out() -> None:
    silent = answer(text(" "), PartEntry(kind="text"), reasoning(complete=False))

    assert lower((user(), silent, user("Again")), model=MODEL) == (
        UserTurn(text="Hello"),
        UserTurn(text="Again"),
    )


@pytest.mark.parametrize(
    ("entry", "goes_back"),
    [
        (answer(reasoning(), text("So.")), True),
        (answer(reasoning(complete=False), text("So.")), False),
        (answer(reasoning(replay={}), text("So.")), False),
        (answer(reasoning(), text("So."), model="anthropic:other"), False),
        (answer(reasoning(), text("So."), state="failed"), False),
        (answer(reasoning(), text("So."), state="interrupted"), False),
        (answer(reasoning(), text("So."), state="unknown"), False),
        (answer(text("So."), reasoning()), False),
        (answer(reasoning()), False),
        (answer(reasoning(), call(), state="interrupted"), True),
    ],
)
def test_reasoning_goes_back_whole_signed_to_its_own_model_and_before_what_it_led_to(
    entry: Entry, goes_back: bool
) -> None:
    blocks = [
        block
        for turn in lower((user(), entry), model=MODEL)
        if isinstance(turn, AssistantTurn)
        for block in turn.blocks
    ]

    assert (ReasoningBlock(text="Because", replay={"signature": "abc"}) in blocks) is goes_back


@pytest.mark.parametrize(
    ("state", "parts", "told"),
    [
        ("interrupted", (), notices.INTERRUPTED),
        ("unknown", (), notices.UNKNOWN),
        ("interrupted", (text("Half"),), notices.INTERRUPTED),
        ("failed", (text("Half"),), notices.FAILED),
        ("failed", (), None),
        ("completed", (text("All"),), None),
    ],
)
def test_the_notice_of_a_step(state: str, parts: tuple[PartEntry, ...], told: str | None) -> None:
    turns = lower((user(), answer(*parts, state=state), user("And?")), model=MODEL)

    notice = [turn.text for turn in turns if isinstance(turn, UserTurn) and turn.origin == "notice"]
    assert notice == ([] if told is None else [told])


def test_a_notice_of_its_own_takes_the_place_of_the_usual_one() -> None:
    turns = lower((user(), answer(state="interrupted", notice=notices.SHUTDOWN)), model=MODEL)

    assert turns[-1] == UserTurn(origin="notice", text=notices.SHUTDOWN)


def test_the_last_step_is_told_that_no_tools_are_left() -> None:
    turns = lower((user(), answer(call())), model=MODEL, is_last_step=True)

    assert turns[-1] == UserTurn(origin="notice", text=notices.NO_STEPS_LEFT)


# Calls


def test_results_follow_their_calls_in_order_and_ids_are_made_unique() -> None:
    turns = lower(
        (user(), answer(call("c"), call("c", output="two"), call("", output="three")), answer(call("c"))),
        model=MODEL,
    )

    results = [(turn.call_id, turn.output) for turn in turns if isinstance(turn, ResultTurn)]
    assert results == [("c", "sent"), ("c_2", "two"), ("call", "three"), ("c_3", "sent")]


@pytest.mark.parametrize(
    ("changed", "says", "failed"),
    [
        ({}, "sent", False),
        ({"output": " "}, verdicts.NO_OUTPUT, False),
        (CUT, verdicts.NOT_RUN, True),
        (CUT | {"entered": True, "effect": "read"}, verdicts.ONLY_READ, True),
        (UNKNOWN, verdicts.MAY_HAVE_RUN, True),
        (UNKNOWN | {"decision": decision("abandon")}, verdicts.MAY_HAVE_RUN, True),
        (UNKNOWN | {"decision": decision("approve")}, verdicts.MAY_HAVE_RUN, True),
        (UNKNOWN | {"decision": decision("mark_done", result="42")}, "Its result: 42", False),
        (
            UNKNOWN | {"decision": decision("mark_not_done", reason="I looked.")},
            "Reason given: I looked.",
            True,
        ),
        ({"state": "error", "error": "It broke"}, "It broke", True),
        ({"state": "error", "error": " "}, verdicts.NO_REASON, True),
        ({"state": "running", "output": ""}, verdicts.MAY_HAVE_RUN, True),
        ({"state": "pending", "approval": "waiting", "entered": False}, verdicts.WAITING, True),
        ({"state": "pending", "entered": False}, verdicts.NOT_RUN, True),
    ],
)
def test_the_model_is_told_what_became_of_its_call(changed: dict[str, Any], says: str, failed: bool) -> None:
    turns = lower((user(), answer(call(**changed))), model=MODEL)

    result = next(turn for turn in turns if isinstance(turn, ResultTurn))
    assert says in result.output
    assert result.failed is failed


def test_a_call_whose_arguments_broke_off_is_told_in_words_and_never_guessed() -> None:
    cut = call(**ONLY_BEGUN, raw_input='{"to": "an')

    turns = lower((user(), answer(text("Half"), cut, state="interrupted")), model=MODEL)

    assert not any(isinstance(turn, ResultTurn) for turn in turns)
    assert isinstance(turns[-1], UserTurn)
    assert turns[-1].text.startswith(notices.INTERRUPTED)
    assert "A call of send_mail had only begun" in turns[-1].text


def test_arguments_that_are_no_object_are_quoted_in_the_result() -> None:
    bad = call(
        raw_input="[1]", input=None, entered=False, state="error", error="Arguments must be an object."
    )

    turns = lower((user(), answer(bad)), model=MODEL)

    result = next(turn for turn in turns if isinstance(turn, ResultTurn))
    assert "The arguments were: [1]" in result.output


def test_a_hosted_call_goes_back_with_its_result_to_its_provider_only() -> None:
    hosted = call(hosted=True, replay={"call": {"id": "h"}, "result": {"data": 1}})

    same = lower((user(), answer(hosted)), model="anthropic:other")
    other = lower((user(), answer(hosted)), model="openai:gpt")

    assert isinstance(same[1], AssistantTurn)
    assert same[1].blocks == (
        CallBlock(
            call_id="call_1", name="send_mail", input={}, hosted=True, replay={"id": "h"},
            result=HostedResult(output="sent", replay={"data": 1}),
        ),
    )  # fmt: skip
    assert not any(isinstance(turn, AssistantTurn) for turn in other)
    assert isinstance(other[-1], UserTurn)
    assert "send_mail was called with {}: sent" in other[-1].text
