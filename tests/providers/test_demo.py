"""``demo:scripted`` does what contract section 2 promises, word for word."""

import asyncio
import time
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.turns import AssistantTurn, CallBlock, TextBlock, Turn, UserTurn
from sessions_app.providers import port
from sessions_app.providers.demo import script
from sessions_app.providers.demo.provider import ScriptedDemo
from tests.providers.asking import ATTEMPT, Facts, Result, ask, request, result, said

NOTICE = UserTurn(origin="notice", text="The last answer was interrupted.")
CONTINUATION = UserTurn(origin="recovery", text="Go on.")


async def demo(*turns: Turn | str, earlier_attempts: int = 0, facts: Facts | None = None) -> Result:
    return await ask(ScriptedDemo(), request(*turns, earlier_attempts=earlier_attempts), facts)


def called(*names: str) -> AssistantTurn:
    return AssistantTurn(
        blocks=tuple(CallBlock(call_id=f"c{i}", name=name, input={}) for i, name in enumerate(names))
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Hello there", "Scripted demo: Hello there"),
        ("line one\n  line two", "Scripted demo: line one\n  line two"),
        ("[[words 3]]", "1 2 3"),
        ("ignored [[words 1]] text", "1"),
        ("a [[delay 1]] b", "Scripted demo: a b"),
        ("[[delay 1]]", "Scripted demo: nothing was asked."),
        ("see [[wiki]] and [a] [[words x]] [[words 0]]",) * 2,
        ("[[[words 2]]", "1 2"),
        ("[[words 2]] [[words 4]]", "1 2 3 4"),
    ],
)
async def test_the_answer_is_exact(message: str, text: str) -> None:
    expected = text if text[0].isdigit() or text.startswith("Scripted") else f"Scripted demo: {text}"

    came = await demo(message)

    assert came.text == expected
    assert came.finish == "stop"


async def test_every_word_is_a_fragment_with_the_space_before_it() -> None:
    came = await demo("Hello there")

    assert came.fragments == ["Scripted", " demo:", " Hello", " there"]


async def test_only_the_newest_message_of_the_user_counts() -> None:
    came = await demo("[[words 9]]", said("1 2 3 4 5 6 7 8 9"), "[[words 2]]")

    assert came.text == "1 2"


async def test_phases_are_told_before_the_first_item() -> None:
    facts = Facts()
    async with aclosing(ScriptedDemo().stream(request("Hi"), facts)) as items:
        await anext(items)

    assert facts.told == ["dispatching", "response 200"]


async def test_what_refuses_the_dispatch_comes_out_and_nothing_is_said() -> None:
    refusal = RuntimeError("fence lost")

    with pytest.raises(RuntimeError) as raised:
        await demo("Hi", facts=Facts(refusal=refusal))

    assert raised.value is refusal


async def test_equal_requests_give_equal_items_and_digests() -> None:
    first, second = request("[[reason why]] [[tool a {}]] x"), request("[[reason why]] [[tool a {}]] x")

    assert (await ask(ScriptedDemo(), first)).items == (await ask(ScriptedDemo(), second)).items
    assert ScriptedDemo().digest(first) == ScriptedDemo().digest(second)
    assert ScriptedDemo().digest(first) != ScriptedDemo().digest(request("other"))


async def test_reasoning_goes_first_and_is_not_part_of_the_text() -> None:
    came = await demo("[[reason because of [x] and [[y]]]] Hi")

    assert came.reasoning == "because of [x] and [[y]]"
    assert came.text == "Scripted demo: Hi"
    kinds = [type(item) for item in came.items]
    assert kinds.index(port.TextDelta) > max(i for i, kind in enumerate(kinds) if kind is port.ReasoningDelta)


async def test_delay_waits_before_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def record(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", record)

    await demo("[[words 3]] [[delay 250]]")

    assert slept == [0.25, 0.25, 0.25]


@pytest.mark.parametrize("partial", ["1", "1 2", "1 2 3 4"])
@pytest.mark.parametrize("after", [NOTICE, CONTINUATION])
async def test_a_continuation_goes_on_at_the_next_word(partial: str, after: UserTurn) -> None:
    came = await demo("[[words 5]]", said(partial), after)

    assert f"{partial} {came.text}" == "1 2 3 4 5"


async def test_a_continuation_of_a_continuation_repeats_nothing() -> None:
    came = await demo("[[words 6]]", said("1 2"), CONTINUATION, said("3 4"), NOTICE, CONTINUATION)

    assert came.text == "5 6"


async def test_a_continuation_with_nothing_left_says_nothing() -> None:
    came = await demo("[[words 2]]", said("1 2"), CONTINUATION)

    assert came.text == ""
    assert came.finish == "stop"


async def test_reasoning_is_not_repeated_once_the_answer_began() -> None:
    came = await demo("[[reason because]] [[words 3]]", said("1"), CONTINUATION)

    assert came.reasoning == ""
    assert came.text == "2 3"


async def test_hang_sends_one_word_and_then_nothing_until_it_is_cancelled() -> None:
    async with aclosing(ScriptedDemo().stream(request("[[words 5]] [[hang]]"), Facts())) as items:
        assert isinstance(await anext(items), port.ResponseIdentified)
        assert await anext(items) == port.TextDelta("text", "1")

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(items), 0.05)


@pytest.mark.parametrize(
    ("name", "error_class", "reason", "told"),
    [
        ("not_sent", "not_sent", "network", []),
        ("rejected", "rejected", "bad_request", ["dispatching", "response 400"]),
        ("rate_limit", "rejected", "rate_limit", ["dispatching", "response 429"]),
        ("overflow", "rejected", "overflow", ["dispatching", "response 400"]),
        ("failed", "failed", "provider_error", ["dispatching", "response 200"]),
        ("ambiguous", "ambiguous", "cut", ["dispatching"]),
        ("partial", "partial", "cut", ["dispatching", "response 200"]),
    ],
)
async def test_an_error_ends_the_attempt_as_its_class_says(
    name: str, error_class: str, reason: str, told: list[str]
) -> None:
    facts = Facts()

    came = await demo(f"[[error {name}]] [[words 4]]", earlier_attempts=7, facts=facts)

    assert (came.outcome, came.reason) == (error_class, reason)
    assert facts.told == told
    assert came.text == ("1 2" if name in ("failed", "partial") else "")


async def test_a_rate_limit_states_its_delay() -> None:
    came = await demo("[[error rate_limit]]")

    assert came.error is not None
    assert came.error.retry_after == 1.0


async def test_the_first_attempts_fail_and_the_next_one_answers() -> None:
    outcomes = [(await demo("[[error failed 2]] [[words 2]]", earlier_attempts=n)).outcome for n in range(4)]

    assert outcomes == ["failed", "failed", "completed", "completed"]


async def test_an_attempt_after_a_partial_one_goes_on_at_the_next_word() -> None:
    came = await demo("[[error partial 1]] [[words 4]]", said("1 2"), CONTINUATION, earlier_attempts=1)

    assert came.text == "3 4"


async def test_tools_are_called_in_parallel_with_their_arguments_as_written() -> None:
    came = await demo('Add. [[tool add {"a": [1, 2], "b": "]]"}]] [[tool now]]')

    tail = ATTEMPT.removeprefix("att_")
    assert came.text == "Scripted demo: Add."
    assert came.calls == [
        (f"call_{tail}_0", "add", '{"a": [1, 2], "b": "]]"}'),
        (f"call_{tail}_1", "now", "{}"),
    ]
    assert came.finish == "tool_calls"


async def test_a_message_of_nothing_but_calls_says_nothing_before_them() -> None:
    came = await demo("[[tool now]]")

    assert came.text == ""
    assert came.finish == "tool_calls"


async def test_arguments_that_are_no_json_are_passed_on_as_they_are() -> None:
    came = await demo('[[tool add {"a": ]]')

    assert came.calls[0][1:] == ("add", '{"a":')


async def test_after_the_results_there_is_one_line_per_result() -> None:
    came = await demo(
        "[[tool add]] [[tool now]]",
        called("add", "now"),
        result("3"),
        result("no\nclock", name="now", failed=True),
    )

    assert came.text == "Scripted demo: add returned: 3\nnow failed: no clock"
    assert came.finish == "stop"


async def test_then_takes_the_place_of_the_message_in_the_next_step() -> None:
    message = "[[tool add]] [[then [[words 2]] [[tool now]] [[then Bye [x]]]]]"

    second = await demo(message, called("add"), result("3"))
    third = await demo(message, called("add"), result("3"), said("1 2"), called("now"), result("9"))

    assert second.text == "1 2"
    assert [call[1] for call in second.calls] == ["now"]
    assert third.text == "Scripted demo: Bye [x]"
    assert third.finish == "stop"


async def test_a_continuation_inside_a_tool_loop_goes_on_in_its_own_step() -> None:
    message = "Hello [[tool add]] [[then [[words 4]]]]"
    first = AssistantTurn(
        blocks=(TextBlock(text="Scripted demo: Hello"), CallBlock(call_id="c1", name="add", input={}))
    )

    came = await demo(message, first, result("3"), said("1 2"), NOTICE, CONTINUATION)

    assert came.text == "3 4"


async def test_errors_inside_then_count_the_attempts_of_their_own_step() -> None:
    message = "[[error rate_limit 1]] [[tool add]] [[then [[error failed 1]] [[words 2]]]]"
    history = (message, called("add"), result("3"))

    assert (await demo(*history, earlier_attempts=2)).outcome == "failed"
    assert (await demo(*history, earlier_attempts=3)).text == "1 2"


async def test_attempts_of_every_step_before_are_not_counted_again() -> None:
    last = "[[error failed 1]] [[words 2]]"
    message = f"[[error failed 1]] [[tool add]] [[then [[error failed 1]] [[tool now]] [[then {last}]]]]"
    history = (message, called("add"), result("3"), called("now"), result("9"))

    assert (await demo(*history, earlier_attempts=4)).outcome == "failed"
    assert (await demo(*history, earlier_attempts=5)).text == "1 2"


async def test_a_new_message_ends_the_tool_loop() -> None:
    came = await demo("[[tool add]] [[then [[words 9]]]]", called("add"), result("3"), "[[words 2]]")

    assert came.text == "1 2"


@given(
    st.lists(
        st.sampled_from(
            ["[[", "]]", "[", "]", "then ", "tool a ", '{"a":1}', "words 3", "x ", "error failed"]
        )
    ).map("".join)
)
def test_no_message_breaks_the_parser(message: str) -> None:
    parsed = script.parse(message)

    assert parsed == script.parse(message)


@pytest.mark.parametrize("piece", ["[[then ", "[[", '[[tool a {"x":', "[[reason [", "]]"])
def test_a_message_made_to_be_slow_is_read_in_bounded_time(piece: str) -> None:
    started = time.process_time()

    script.parse(piece * 20_000)

    assert time.process_time() - started < 5


async def test_a_thousand_streams_share_one_loop() -> None:
    async def one() -> str:
        return (await demo("[[words 20]] [[delay 20]]")).text

    started = time.process_time()
    texts = await asyncio.gather(*(one() for _ in range(1000)))

    assert set(texts) == {" ".join(str(n) for n in range(1, 21))}
    assert time.process_time() - started < 10, "20,000 words cost more than 0.5 ms of CPU each"
