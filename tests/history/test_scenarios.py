"""Conversations that broke other products, as the next request to each provider."""

from typing import Any

import pytest

from schema.turns import AssistantTurn, ReasoningBlock, ResultTurn, TextBlock, Turn, UserTurn
from sessions_app.history import lower, notices, verdicts
from sessions_app.history.entries import Entry
from tests.history.test_validity import FORMATS, encoded
from tests.history.transcripts import (
    CUT,
    HOSTED,
    MODEL,
    ONLY_BEGUN,
    UNKNOWN,
    answer,
    call,
    reasoning,
    text,
    user,
)


def sent(*history: Entry, model: str = MODEL) -> tuple[Turn, ...]:
    """The turns, after every provider's validator has read the request that is made of them."""
    turns = lower(history, model=model)
    for wire in FORMATS.values():
        wire.validate(encoded(wire, turns))
        wire.validate(encoded(wire, turns, has_tools=False))
    return turns


def results(turns: tuple[Turn, ...]) -> list[tuple[str, str, bool]]:
    return [(turn.call_id, turn.output, turn.failed) for turn in turns if isinstance(turn, ResultTurn)]


def notices_in(turns: tuple[Turn, ...]) -> list[str]:
    return [turn.text for turn in turns if isinstance(turn, UserTurn) and turn.origin == "notice"]


# Stopped and killed in the middle of calls


def test_killed_in_a_batch_of_three_the_model_learns_which_ran_which_may_have_and_which_did_not() -> None:
    batch = (call("a", output="kept"), call("b", **UNKNOWN), call("c", **CUT))

    turns = sent(user("Go"), answer(*batch, state="unknown"), user("What happened?"))

    assert [(call_id, failed) for call_id, _, failed in results(turns)] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]
    told = [output for _, output, _ in results(turns)]
    assert told[0] == "kept"
    assert "may have run: its outcome is unknown" in told[1]
    assert "was not run" in told[2]
    assert [type(turn).__name__ for turn in turns[:5]] == ["UserTurn", "AssistantTurn"] + 3 * ["ResultTurn"]
    assert notices_in(turns) == [notices.UNKNOWN]


def test_stopped_during_a_call_the_next_prompt_is_accepted() -> None:
    turns = sent(user(), answer(text("Sending."), call(**UNKNOWN), state="interrupted"), user("next"))

    assert [output for _, output, _ in results(turns)] == [
        f"Tool execution interrupted. {verdicts.MAY_HAVE_RUN}"
    ]
    assert notices_in(turns) == [notices.INTERRUPTED]


def test_some_of_several_parallel_calls_were_refused() -> None:
    refused = call("b", state="error", error="Unknown tool: send_mial", output="", input=None, entered=False)

    turns = sent(user(), answer(call("a"), refused), user("next"))

    assert results(turns) == [("a", "sent", False), ("b", "Unknown tool: send_mial", True)]


def test_an_orphan_in_the_middle_of_a_long_conversation_stays_answered_for_ever() -> None:
    orphan = answer(call("call-1", **UNKNOWN), state="unknown")

    turns = sent(user(), orphan, user(), answer(call("call-1")), answer(text("Done.")), user("next"))

    assert [call_id for call_id, _, _ in results(turns)] == ["call-1", "call-1_2"]
    assert [failed for _, _, failed in results(turns)] == [True, False]


def test_a_call_that_waits_or_runs_is_answered_too() -> None:
    waiting = call("a", state="pending", approval="waiting", entered=False, output="")
    running = call("b", state="running", output="")

    turns = sent(user(), answer(waiting, running, state="waiting"), user("next"))

    assert [output for _, output, _ in results(turns)] == [verdicts.WAITING, verdicts.MAY_HAVE_RUN]


def test_only_reading_calls_are_safe_to_repeat() -> None:
    turns = sent(user(), answer(call(**CUT | {"entered": True, "effect": "read"}), state="unknown"))

    assert [output for _, output, _ in results(turns)] == [verdicts.ONLY_READ]


# Arguments


@pytest.mark.parametrize("raw", ["", '{"to": "ann', '{"to": "ann"'])
def test_a_half_streamed_call_is_no_call(raw: str) -> None:
    """No arguments could be given for it that the model wrote."""
    turns = sent(
        user(), answer(text("Sending."), call(**ONLY_BEGUN, raw_input=raw), state="unknown"), user("next")
    )

    assert turns[1] == AssistantTurn(blocks=(TextBlock(text="Sending."),))
    assert results(turns) == []
    (notice,) = notices_in(turns)
    assert notice.startswith(notices.UNKNOWN)
    assert "A call of send_mail had only begun" in notice


def test_a_cut_answer_keeps_the_call_that_was_whole_and_tells_of_the_other() -> None:
    whole = call("a", **ONLY_BEGUN, raw_input='{"to": "ann"}')

    turns = sent(user(), answer(whole, call("b", **ONLY_BEGUN, raw_input='{"to'), state="unknown"))

    assert results(turns) == [("a", verdicts.NOT_RUN, True)]
    assert isinstance(turns[1], AssistantTurn)
    assert [block.input for block in turns[1].blocks if block.kind == "call"] == [{"to": "ann"}]
    assert "had only begun" in notices_in(turns)[0]


@pytest.mark.parametrize("raw", ["{}{}", "[1]", "ann", '{"to": NaN}', '{"to": "ann'])
def test_malformed_arguments_of_a_whole_answer_stay_a_call_whose_result_quotes_them(raw: str) -> None:
    refused = call(raw_input=raw, input=None, state="error", error="Malformed.", output="", entered=False)

    turns = sent(user(), answer(reasoning(), refused))

    assert isinstance(turns[1], AssistantTurn)
    assert [block.kind for block in turns[1].blocks] == ["reasoning", "call"]
    assert results(turns) == [("call_1", f"Malformed.\nThe arguments were: {raw}", True)]


def test_a_refused_call_without_arguments_had_none() -> None:
    refused = call(raw_input="", input=None, state="error", error="Unknown tool: x", output="", entered=False)

    assert results(sent(user(), answer(refused))) == [("call_1", "Unknown tool: x", True)]


# Empty content


@pytest.mark.parametrize(
    "silent",
    [
        answer(),
        answer(text("")),
        answer(text("  \n")),
        answer(reasoning()),
        answer(reasoning(complete=False), state="failed"),
    ],
)
def test_an_answer_without_meaning_leaves_no_trace_and_no_empty_message(silent: Entry) -> None:
    assert sent(user("One"), silent, user("Two")) == (UserTurn(text="One"), UserTurn(text="Two"))


def test_a_stop_before_the_first_word_is_told_all_the_same() -> None:
    assert sent(user("One"), answer(state="interrupted"), user("Two")) == (
        UserTurn(text="One"),
        UserTurn(origin="notice", text=notices.INTERRUPTED),
        UserTurn(text="Two"),
    )


def test_a_silent_command_has_an_output() -> None:
    assert results(sent(user(), answer(call(output="")))) == [("call_1", "(no output)", False)]


# Ids


def test_ids_that_repeat_across_answers_and_within_one_each_keep_their_own_result() -> None:
    first = answer(call("call-1", output="one"), call("call-1", output="two"))
    second = answer(call("call-1", output="three"), call("", output="four"), call("", output="five"))

    turns = sent(user(), first, second, user("next"))

    assert [output for _, output, _ in results(turns)] == ["one", "two", "three", "four", "five"]
    assert len({call_id for call_id, _, _ in results(turns)}) == 5


def test_a_long_id_that_the_provider_gave_itself_is_mapped_alike_for_call_and_result() -> None:
    long = ("c" * 69, "c" * 68 + "d")

    turns = sent(user(), answer(*map(call, long)), user("next"))

    body: Any = encoded(FORMATS["chat"], turns)
    ids = [each["id"] for each in body["messages"][2]["tool_calls"]]
    assert ids == [each["tool_call_id"] for each in body["messages"][3:5]]
    assert len(set(ids)) == 2


# Models change


def test_what_a_model_signed_comes_back_to_it() -> None:
    signed = reasoning(replay={"encrypted_content": "x", "id": "rs_1"})
    turns = sent(user(), answer(signed, text("So."), model="openai:gpt"), user("next"), model="openai:gpt")

    assert isinstance(turns[1], AssistantTurn)
    assert turns[1].blocks[0] == ReasoningBlock(
        text="Because", replay={"encrypted_content": "x", "id": "rs_1"}
    )


@pytest.mark.parametrize(
    ("state", "model"), [("failed", MODEL), ("completed", "openai:gpt"), ("completed", "anthropic:other")]
)
def test_signatures_stay_behind_when_the_answer_failed_or_the_model_changed(state: str, model: str) -> None:
    turns = sent(user(), answer(reasoning(), text("So."), state=state), user("next"), model=model)

    assert turns[1] == AssistantTurn(blocks=(TextBlock(text="So."),))


def test_reasoning_that_shows_no_words_goes_back_only_where_it_is_taken_without() -> None:
    turns = sent(user(), answer(reasoning(""), text("So.")), user("next"))

    assert isinstance(turns[1], AssistantTurn)
    assert turns[1].blocks[0] == ReasoningBlock(text="", replay={"signature": "abc"})
    body: Any = encoded(FORMATS["anthropic"], turns)
    assert body["messages"][1]["content"] == [{"type": "text", "text": "So."}]


def test_reasoning_before_calls_goes_back_though_the_calls_were_interrupted() -> None:
    """The answer was whole: servers that want reasoning back with its calls refuse a request without it."""
    thought = reasoning(replay={"field": "reasoning_content"})
    stopped = answer(thought, call(**UNKNOWN), state="interrupted", model="openai:gpt")

    turns = sent(user(), stopped, user("next"), model="openai:gpt")

    body: Any = encoded(FORMATS["chat"], turns)
    assert body["messages"][2]["reasoning_content"] == "Because"


# Hosted calls


def test_a_hosted_call_that_finished_comes_back_with_its_result() -> None:
    turns = sent(user(), answer(reasoning(), call("srvtoolu_1", **HOSTED), text("Sunny.")), user("next"))

    body: Any = encoded(FORMATS["anthropic"], turns)
    assert [block["type"] for block in body["messages"][1]["content"]] == [
        "thinking",
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]


@pytest.mark.parametrize(
    ("state", "model", "changed", "told"),
    [
        ("completed", MODEL, UNKNOWN | {"error": "Provider did not return a tool result"}, "may have run"),
        ("unknown", MODEL, UNKNOWN, "may have run"),
        ("unknown", MODEL, {}, "sent"),
        ("completed", "openai:gpt", {}, "sent"),
        ("completed", MODEL, {"state": "error", "error": "max_uses_exceeded"}, "max_uses_exceeded"),
    ],
)
def test_a_hosted_call_that_cannot_go_back_is_told_in_words_and_takes_its_reasoning_with_it(
    state: str, model: str, changed: dict[str, Any], told: str
) -> None:
    searched = call("srvtoolu_1", **HOSTED | changed)

    turns = sent(
        user(), answer(reasoning(), searched, text("Sunny."), state=state), user("next"), model=model
    )

    assert turns[1] == AssistantTurn(blocks=(TextBlock(text="Sunny."),))
    (notice,) = notices_in(turns)
    assert "web_search was called with {}" in notice
    assert told in notice


# The end of a history


def test_a_resume_after_a_whole_answer_ends_with_a_word_of_ours_that_stays() -> None:
    before = sent(user(), answer(text("Done.")))
    after = sent(user(), answer(text("Done.")), answer(text("More.")), user("next"))

    assert before[-1] == UserTurn(origin="notice", text=notices.GO_ON)
    assert after[: len(before)] == before


def test_a_history_that_begins_with_the_assistant_is_opened_for_the_user() -> None:
    turns = sent(answer(text("Welcome.")), user("Hello"))

    assert turns[0] == UserTurn(origin="notice", text=notices.OPENING)
