"""What is easily lost between two steps, two wakes, two people: each as one promise."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from schema.attempts import AttemptError
from sessions_app import log, sessions
from sessions_app.execution import coordinator
from sessions_app.log import listeners, projector
from sessions_app.models import Agent, MessagePart, PartCheckpoint
from sessions_app.providers import port
from tests.execution.conftest import Call, Chat, Gate, Script, StubProvider, Worker, answers, fails, waits
from tests.execution.test_calls import Bench, ask_about, calls, decide, parts, results
from tests.execution.test_calls import bench as bench  # a fixture
from tests.support.waiting import until

# Wakes


def test_wakes_without_end_grow_no_stack(chat: Chat, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0

    async def wakes_itself(drain: coordinator.Drain) -> None:
        nonlocal times
        times += 1
        drain.woken_again = times < 20_000

    monkeypatch.setattr(coordinator.Drain, "run", wakes_itself)

    coordinator.hand_over(chat.id)

    until(lambda: not worker.running.drains, within=30)
    assert times == 20_000


def test_each_wake_that_comes_while_another_is_followed_is_followed_too(
    chat: Chat, provider: StubProvider
) -> None:
    gates = [Gate(), Gate(), Gate()]
    provider.scripts = [waits(gate) for gate in gates] + [answers("last")]
    chat.say("one", delivery="queue")

    for number, gate in enumerate(gates):
        until(partial(getattr, gate, "reached"), what="the next request")
        chat.say(f"next {number}", delivery="queue")
        gate.open()

    chat.settled()
    assert chat.texts()[::2] == ["one", "next 0", "next 1", "next 2"]
    assert len(provider.calls) == 4


def test_a_steer_sent_while_the_step_fails_is_answered(chat: Chat, provider: StubProvider) -> None:
    gate = Gate()
    provider.scripts = [fails("failed", "provider_error", gate=gate), answers("steered")]
    chat.say("one")
    until(lambda: gate.reached)

    chat.admit("two")
    gate.open()

    chat.settled()
    assert [answer.state for answer in chat.answers()] == ["failed", "completed"]
    assert chat.texts()[-2:] == ["two", "steered"]


# Faults of ours


@pytest.mark.both_databases
def test_a_promotion_that_fails_leaves_the_prompt_pending_and_the_next_wake_answers_it(
    chat: Chat, worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    project = projector.project

    def fails_to_promote(target: Any, event: Any, **where: Any) -> None:
        if event.type == "prompt.promoted":
            raise ArithmeticError
        project(target, event, **where)

    with monkeypatch.context() as broken:
        broken.setattr(projector, "project", fails_to_promote)
        message = chat.say("Hi")
        until(lambda: "drain.failed" in [record.msg for record in caplog.records], what="the drain failed")
        until(lambda: not worker.running.drains)
        assert [prompt.pk for prompt in sessions.prompts_of(chat.row, state="pending")] == [message]
        assert chat.row.owner_id is None
    caplog.clear()

    coordinator.hand_over(chat.id)

    chat.settled()
    assert chat.texts() == ["Hi", "Hello"]
    assert chat.events().count("prompt.promoted") == 1


def test_a_listener_that_fails_after_the_promotion_strands_nothing(
    chat: Chat, provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(session_id: str, events: Any) -> None:
        raise ArithmeticError

    monkeypatch.setattr(listeners, "_listeners", [broken, *listeners._listeners])

    chat.say("Hi")

    chat.settled()
    assert (chat.texts(), len(provider.calls)) == (["Hi", "Hello"], 1)


# What a step is made from


def test_a_switch_in_the_middle_of_a_step_counts_from_the_next_one(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    Agent.objects.create(name="pirate", system="Talk like one.")
    gate = Gate()

    async def wait(given: Any, context: Any) -> str:
        await gate.wait()
        return "ok"

    bench.add("slow", wait)
    provider.scripts = [calls(("slow", {})), answers("Arr")]
    chat.say("Go")
    until(lambda: gate.reached)

    sessions.update(session_id=chat.id, agent="pirate", model="stub:two", now=timezone.now())
    gate.open()

    chat.settled()
    before, after = (call.request for call in provider.calls)
    assert (before.model, before.system) == ("one", "")
    assert (after.model, after.system) == ("two", "Talk like one.")
    assert [(answer.agent, answer.model) for answer in chat.answers()] == [
        ("default", "stub:one"),
        ("pirate", "stub:two"),
    ]


def test_a_tool_that_the_agent_denies_is_neither_offered_nor_run(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    Agent.objects.create(name="default", tool_modes={"*": "deny", "good": "allow"})
    bench.add("good")
    bench.add("bad")
    provider.scripts = [calls(("bad", {}), ("good", {})), answers("done")]

    chat.say("Go")

    chat.settled()
    assert [tool.name for tool in provider.calls[0].request.tools] == ["good"]
    assert bench.names == ["good"]
    assert results(provider, 1) == ["The tool bad is not allowed here.", "good did it"]


def test_an_approved_call_whose_tool_is_gone_fails_with_its_reason_and_the_loop_goes_on(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    bench.add("mail")
    ask_about("mail")
    provider.scripts = [calls(("mail", {})), answers("done")]
    chat.say("Go")
    until(lambda: chat.status().state == "waiting")
    bench.tools.clear()

    decide(chat, parts(chat)[0].pk, "approve")
    coordinator.hand_over(chat.id)

    chat.settled()
    assert results(provider, 1) == ["Unknown tool: mail"]
    assert bench.entered == []


def test_one_id_in_two_answers_belongs_to_each_ones_own_call(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    bench.add("count", lambda given, context: str(given["n"]))
    provider.scripts = [
        calls(("count", {"n": 1}), ids=("call_x",)),
        calls(("count", {"n": 2}), ids=("call_x",)),
        answers("done"),
    ]

    chat.say("Go")

    chat.settled()
    assert [(part.call_id, part.output) for part in parts(chat)] == [("call_x", "1"), ("call_x", "2")]
    assert results(provider, 2) == ["1", "2"]


# Answers that break off


def breaks_off(*items: port.Item, by: str, gate: Gate) -> Script:
    """Sends the items, waits, and ends as an error, or never."""

    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        for item in items:
            yield item
        await gate.wait()
        if by == "stop":
            await asyncio.get_running_loop().create_future()
        raise port.ProviderError(AttemptError(error_class="partial", reason="cut", message="It broke off."))

    return script


HALF: dict[str, tuple[port.Item, ...]] = {
    "text": (port.TextDelta("t", "half "), port.TextDelta("t", "of it")),
    "reasoning": (port.ReasoningDelta("r", "half "), port.ReasoningDelta("r", "of it")),
    "tool": (port.CallStarted("c", "call_1", "mail"), port.CallDelta("c", '{"to": "b')),
    "whole tool": (
        port.CallStarted("c", "call_1", "mail"),
        port.CallDelta("c", '{"to": "bob"}'),
        port.PartClosed("c"),
    ),
    "hosted tool": (
        port.CallStarted("h", "ws_1", "web_search", hosted=True),
        port.CallDelta("h", "{}"),
        port.PartClosed("h"),
    ),
}


@pytest.mark.parametrize("by", ["failure", "stop"])
@pytest.mark.parametrize("kind", HALF)
def test_what_came_of_a_part_is_kept_and_closed_and_nothing_of_it_is_run(
    chat: Chat, provider: StubProvider, bench: Bench, kind: str, by: str
) -> None:
    bench.add("mail")
    gate = Gate()
    provider.scripts = [breaks_off(*HALF[kind], by=by, gate=gate), answers("fresh")]
    chat.say("Go")
    until(lambda: gate.reached)
    if by == "stop":
        chat.stop()
    gate.open()
    chat.settled()

    (part,) = MessagePart.objects.filter(session_id=chat.id)
    assert part.ended_at is not None
    assert not PartCheckpoint.objects.exists()
    if part.kind == "tool":
        assert (part.state, part.error) == ("error", "Tool execution interrupted")
        assert (part.unknown_at is not None) is part.hosted
    else:
        assert part.text == "half of it"
    assert bench.entered == []
    chat.say("And now?")
    until(lambda: chat.texts()[-1] == "fresh", what="the next prompt was answered")
    assert [event.type for event in log.events_after(chat.id)].count("tool.called") == int(part.hosted)


def test_a_hosted_call_without_a_result_at_a_proper_end_failed(chat: Chat, provider: StubProvider) -> None:
    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        for item in HALF["hosted tool"]:
            yield item
        yield port.Finished("stop")

    provider.scripts = [script]

    chat.say("Go")

    chat.settled()
    (part,) = parts(chat)
    assert (part.state, part.error) == ("error", "Provider did not return a tool result")
