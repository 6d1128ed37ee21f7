"""Tool calls in a drain: written ahead, entered once, settled, asked about, stopped."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone

from schema.problems import AlreadyDecided, NotWaiting, Superseded
from sessions_app import ownership, sessions
from sessions_app.execution import coordinator, recorder, stages
from sessions_app.history import verdicts
from sessions_app.live import nudge
from sessions_app.models import Agent, MessagePart, Session
from sessions_app.models import Worker as WorkerRow
from sessions_app.providers import port
from sessions_app.tools import registry
from sessions_app.tools.port import INTERRUPTED, Input, OutcomeUnknown, Output, Tool, ToolContext, Toolset
from tests.execution.conftest import Call, Chat, Gate, Script, StubProvider, Worker, answers, looked_up
from tests.support.waiting import until


class Bench:
    """Tools of a test, which write down how they were entered."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, Input, str]] = []
        self.tools: dict[str, Tool] = {}

    def add(self, name: str, act: Any = None, *, effect: Any = "side_effect", timeout: float = 30) -> None:
        async def enter(given: Input, context: ToolContext) -> Output:
            self.entered.append((name, given, context.call_id))
            result = act(given, context) if act is not None else f"{name} did it"
            if asyncio.iscoroutine(result):
                result = await result
            return result if isinstance(result, Output) else Output(content=result)

        self.tools[name] = Tool(
            name=name,
            description=name,
            parameters={"type": "object"},
            effect=effect,
            normalise=lambda given: given,
            enter=enter,
            timeout_seconds=timeout,
        )

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.entered]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()

    async def toolset() -> Toolset:
        return Toolset(tools=dict(bench.tools))

    monkeypatch.setattr(registry, "toolset", toolset)
    return bench


def calls(*wanted: tuple[str, Any], ids: tuple[str, ...] = (), finish: str = "tool_calls") -> Script:
    """One answer that calls these tools, arguments as given (text is sent as it is)."""

    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        await call.phases.response_started(status=200, request_id=None, headers={})
        for index, (name, given) in enumerate(wanted):
            call_id = ids[index] if ids else f"call_{index}"
            yield port.CallStarted(f"c{index}", call_id, name)
            yield port.CallDelta(f"c{index}", given if isinstance(given, str) else json.dumps(given))
            yield port.PartClosed(f"c{index}")
        yield port.Finished(finish)

    return script


def parts(chat: Chat) -> list[MessagePart]:
    return list(MessagePart.objects.filter(session_id=chat.id, kind="tool").order_by("message__seq", "index"))


def results(provider: StubProvider, request: int) -> list[str]:
    """What the model was told about its calls."""
    return [turn.output for turn in provider.calls[request].request.turns if turn.role == "result"]


def ask_about(*names: str) -> None:
    Agent.objects.create(name="default", tool_modes=dict.fromkeys(names, "ask"))


def decide(chat: Chat, call_id: str, action: Any) -> None:
    sessions.answer_call(session_id=chat.id, call_id=call_id, action=action, by="ann", now=timezone.now())


# Entered and settled


@pytest.mark.both_databases
def test_a_call_is_durable_before_it_is_entered_and_its_result_goes_back(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    seen: list[tuple[str, Any]] = []

    async def look(given: Input, context: ToolContext) -> str:
        part = await looked_up(lambda: MessagePart.objects.get(pk=context.call_id))
        seen.append((part.state, part.input))
        return "sunny"

    bench.add("weather", look)
    provider.scripts = [calls(("weather", {"city": "Bonn"})), answers("It is sunny.")]

    chat.say("How is the weather?")

    chat.settled()
    assert seen == [("running", {"city": "Bonn"})]
    assert results(provider, 1) == ["sunny"]
    assert chat.texts()[-1] == "It is sunny."
    assert chat.events()[8:] == [
        "tool.input.started",
        "tool.input.ended",
        "attempt.settled",
        "tool.called",
        "tool.succeeded",
        "step.ended",
        "step.started",
        "attempt.prepared",
        "attempt.dispatched",
        "attempt.response_started",
        "attempt.first_output",
        "text.started",
        "text.ended",
        "attempt.settled",
        "step.ended",
    ]


@pytest.mark.both_databases
def test_calls_of_one_step_run_at_once_and_all_settle_before_the_next_request(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    gate = Gate()

    async def wait(given: Input, context: ToolContext) -> str:
        await gate.wait()
        return str(given["n"])

    bench.add("slow", wait)
    provider.scripts = [calls(*(("slow", {"n": n}) for n in range(5))), answers("ok")]
    chat.say("Go")
    until(lambda: gate.reached == 5, what="five calls at once")
    assert [part.state for part in parts(chat)] == ["running"] * 5
    assert len(provider.calls) == 1

    gate.open()

    chat.settled()
    assert results(provider, 1) == ["0", "1", "2", "3", "4"]
    assert len(bench.entered) == len({call_id for _, _, call_id in bench.entered}) == 5


def test_a_chain_of_three_steps_reads_each_result(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    bench.add("one")
    bench.add("two")
    provider.scripts = [calls(("one", {})), calls(("two", {})), answers("done")]

    chat.say("Go")

    chat.settled()
    assert bench.names == ["one", "two"]
    assert results(provider, 2) == ["one did it", "two did it"]


def test_a_steer_sent_while_a_tool_runs_is_read_by_the_next_step(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    gate = Gate()

    async def wait(given: Input, context: ToolContext) -> str:
        await gate.wait()
        return "ok"

    bench.add("slow", wait)
    provider.scripts = [calls(("slow", {})), answers("done")]
    chat.say("Go")
    until(lambda: gate.reached)

    chat.admit("And this")
    gate.open()

    chat.settled()
    assert [turn.role for turn in provider.calls[1].request.turns] == ["user", "assistant", "result", "user"]


# Calls that fail


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("nobody", "{}", "Unknown tool: nobody"),
        ("known", '{"path": "/a", "text": "abc', "malformed JSON"),
        ("known", "[1, 2]", "malformed JSON"),
        ("known", '{"d": 1}{"d": 2}', "malformed JSON"),
        ("known", "7", "malformed JSON"),
    ],
)
def test_a_call_that_cannot_be_run_fails_with_its_reason_and_the_loop_goes_on(
    chat: Chat, provider: StubProvider, bench: Bench, name: str, arguments: str, told: str
) -> None:
    bench.add("known")
    provider.scripts = [calls((name, arguments), ("known", {})), answers("done")]

    chat.say("Go")

    assert chat.settled().state == "idle"
    assert told in results(provider, 1)[0]
    assert bench.names == ["known"]
    assert not parts(chat)[0].unknown_at


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize("arguments", ["", " ", '{"path": "/a", "text": "abc', '{"d": 1}'])
def test_a_call_that_was_cut_by_a_limit_runs_only_with_arguments_that_are_whole(
    chat: Chat, provider: StubProvider, bench: Bench, finish: str, arguments: str
) -> None:
    bench.add("known")
    provider.scripts = [calls(("known", ""), ("known", arguments), finish=finish), answers("done")]

    chat.say("Go")

    chat.settled()
    whole = [{"d": 1}] if arguments == '{"d": 1}' else []
    assert [given for _, given, _ in bench.entered] == [{}, *whole]
    if not whole:
        assert "before the arguments of this call were complete" in results(provider, 1)[1]


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_no_arguments_are_no_arguments(
    chat: Chat, provider: StubProvider, bench: Bench, arguments: str
) -> None:
    bench.add("known")
    provider.scripts = [calls(("known", arguments)), answers("done")]

    chat.say("Go")

    chat.settled()
    assert [given for _, given, _ in bench.entered] == [{}]


def test_two_calls_with_one_id_run_once_and_both_have_a_result(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    bench.add("known")
    provider.scripts = [calls(("known", {"n": 1}), ("known", {"n": 2}), ids=("x", "x")), answers("done")]

    chat.say("Go")

    chat.settled()
    assert [given for _, given, _ in bench.entered] == [{"n": 1}]
    assert len(results(provider, 1)) == 2


def test_a_tool_that_says_it_failed_is_known_to_have_failed(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    bench.add("broken", lambda given, context: Output(content="no such city", is_error=True))
    provider.scripts = [calls(("broken", {})), answers("done")]

    chat.say("Go")

    status = chat.settled()
    assert (status.state, status.unknown.tools) == ("idle", ())
    assert "no such city" in results(provider, 1)[0]


@pytest.mark.parametrize(
    ("effect", "is_unknown"), [("side_effect", True), ("idempotent", True), ("read", False)]
)
def test_a_tool_that_hangs_is_cut_and_is_unknown_unless_it_only_reads(
    chat: Chat, provider: StubProvider, bench: Bench, effect: str, is_unknown: bool
) -> None:
    async def hang(given: Input, context: ToolContext) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    bench.add("hangs", hang, effect=effect, timeout=0.05)
    provider.scripts = [calls(("hangs", {})), answers("done")]

    chat.say("Go")

    status = chat.settled()
    assert chat.texts()[-1] == "done"
    assert bool(status.unknown.tools) is is_unknown
    assert status.state == ("needs_decision" if is_unknown else "idle")


def test_a_tool_that_cannot_tell_is_unknown(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    async def lost(given: Input, context: ToolContext) -> str:
        raise OutcomeUnknown("the connection was reset")

    bench.add("mail", lost)
    provider.scripts = [calls(("mail", {})), answers("done")]

    chat.say("Go")

    assert len(chat.settled().unknown.tools) == 1
    assert parts(chat)[0].error == "Tool execution interrupted"
    assert "unknown" in results(provider, 1)[0].lower()


def test_a_huge_output_is_cut_and_stored(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    bench.add("big", lambda given, context: "x" * 3_000_000, effect="read")
    provider.scripts = [calls(("big", {})), answers("done")]

    chat.say("Go")

    chat.settled()
    (part,) = parts(chat)
    assert part.overflow
    assert len(part.output) < 40_000


def _raises(given: Input, context: ToolContext) -> str:
    raise ZeroDivisionError("no such number")


@pytest.mark.parametrize(
    ("act", "state", "told"),
    [
        pytest.param(_raises, "error", "no such number", id="raises"),
        pytest.param(
            lambda given, context: Output(content="not today", is_error=True),
            "error",
            "not today",
            id="fails",
        ),
        pytest.param(lambda given, context: "y" * 50_000_000, "completed", "yyy", id="50 MB"),
        pytest.param(
            lambda given, context: bytes(range(256)) * 4000, "completed", "1,024,000 bytes", id="binary"
        ),
        pytest.param(lambda given, context: "\x00\ud800", "completed", "(no output)", id="no text"),
        pytest.param(lambda given, context: "", "completed", "(no output)", id="nothing"),
    ],
)
def test_whatever_a_tool_does_the_model_is_told_its_sibling_runs_and_the_loop_goes_on(
    chat: Chat, provider: StubProvider, bench: Bench, act: Any, state: str, told: str
) -> None:
    bench.add("odd", act)
    bench.add("good")
    provider.scripts = [calls(("odd", {}), ("good", {})), answers("done"), answers("again")]
    chat.say("Go")
    waiting = chat.admit("And then?", delivery="queue")

    assert chat.settled().state == "idle"

    assert [part.state for part in parts(chat)] == [state, "completed"]
    assert not any(part.unknown_at for part in parts(chat))
    odd, good = results(provider, 1)
    assert told in odd
    assert len(odd) < 40_000
    assert good == "good did it"
    assert waiting in [message["id"] for message in sessions.message_shapes(sessions.messages_of(chat.row))]
    assert chat.texts()[-2:] == ["And then?", "again"]


def test_the_last_step_offers_no_tools_and_runs_none(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    Agent.objects.create(name="default", steps=2)
    bench.add("again")
    provider.scripts = [calls(("again", {}))]

    chat.say("Go")

    chat.settled()
    assert bench.names == ["again"]
    assert [bool(call.request.tools) for call in provider.calls] == [True, False]
    assert "last step" in provider.calls[1].request.turns[-1].text  # type: ignore[union-attr]
    assert "maximum agent steps" in parts(chat)[1].error


def test_a_new_prompt_gives_new_steps(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    Agent.objects.create(name="default", steps=2)
    bench.add("again")
    provider.scripts = [calls(("again", {})), answers("one"), calls(("again", {})), answers("two")]
    chat.say("Go")
    chat.settled()

    chat.say("Once more")

    chat.settled()
    assert bench.names == ["again", "again"]


def test_progress_is_shown_while_a_tool_runs(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    gate = Gate()

    async def tell(given: Input, context: ToolContext) -> str:
        context.progress("half")
        await gate.wait()
        return "ok"

    bench.add("slow", tell)
    provider.scripts = [calls(("slow", {})), answers("done")]
    chat.say("Go")

    until(lambda: [part.progress for part in parts(chat)] == ["half"], what="the progress")

    gate.open()
    chat.settled()
    assert "tool.progress" in chat.events()


# Approvals


def asked(chat: Chat, provider: StubProvider, bench: Bench, *names: str) -> list[str]:
    """A step that waits for a person about each of the tools."""
    for name in names:
        bench.add(name)
    ask_about(*names)
    provider.scripts = [calls(*((name, {}) for name in names)), answers("done")]
    chat.say("Go")
    until(lambda: chat.status().state == "waiting", what="the question")
    until(lambda: chat.row.owner_id is None)
    return list(chat.status().waiting)


def test_a_question_holds_no_worker_and_the_answer_goes_on(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker
) -> None:
    (waiting,) = asked(chat, provider, bench, "mail")
    until(lambda: not worker.running.drains)
    assert bench.entered == []

    decide(chat, waiting, "approve")
    coordinator.hand_over(chat.id)

    assert chat.settled().state == "idle"
    assert bench.names == ["mail"]
    assert chat.texts()[-1] == "done"


def test_a_denied_call_is_not_entered_and_the_model_is_told(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    (waiting,) = asked(chat, provider, bench, "mail")

    decide(chat, waiting, "deny")
    coordinator.hand_over(chat.id)

    chat.settled()
    assert bench.entered == []
    assert "denied" in results(provider, 1)[0]


@pytest.mark.both_databases
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_questions_of_one_step_are_answered_in_either_order(
    chat: Chat, provider: StubProvider, bench: Bench, order: tuple[int, int]
) -> None:
    waiting = asked(chat, provider, bench, "first", "second")

    decide(chat, waiting[order[0]], "approve")
    coordinator.hand_over(chat.id)
    until(lambda: len(bench.entered) == 1)
    until(lambda: chat.row.owner_id is None)
    assert chat.status().state == "waiting"
    assert len(provider.calls) == 1
    decide(chat, waiting[order[1]], "approve")
    coordinator.hand_over(chat.id)

    chat.settled()
    assert sorted(bench.names) == ["first", "second"]
    assert len(provider.calls) == 2


def test_calls_that_need_nobody_run_before_the_question_is_answered(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    bench.add("free")
    bench.add("mail")
    ask_about("mail")
    provider.scripts = [calls(("mail", {}), ("free", {})), answers("done")]

    chat.say("Go")

    until(lambda: chat.status().state == "waiting")
    until(lambda: bench.names == ["free"])
    assert [part.state for part in parts(chat)] == ["pending", "completed"]


def test_an_answer_that_comes_while_a_sibling_runs_is_seen_when_it_ends(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    gate = Gate()

    async def wait(given: Input, context: ToolContext) -> str:
        await gate.wait()
        return "ok"

    bench.add("slow", wait)
    bench.add("mail")
    ask_about("mail")
    provider.scripts = [calls(("slow", {}), ("mail", {})), answers("done")]
    chat.say("Go")
    until(lambda: gate.reached)

    decide(chat, parts(chat)[1].pk, "approve")
    gate.open()

    chat.settled()
    assert bench.names == ["slow", "mail"]


def test_prompts_wait_while_a_person_is_asked(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    (waiting,) = asked(chat, provider, bench, "mail")

    chat.say("Meanwhile")

    until(lambda: chat.row.owner_id is None)
    assert chat.status().pending.steer == 1
    assert len(provider.calls) == 1

    decide(chat, waiting, "approve")
    coordinator.hand_over(chat.id)
    chat.settled()
    assert chat.status().pending.steer == 0


@pytest.mark.both_databases
def test_a_question_survives_every_process_and_is_answered_after(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker
) -> None:
    (waiting,) = asked(chat, provider, bench, "mail")
    assert worker.stop()
    decide(chat, waiting, "approve")
    assert sessions.message_shapes(chat.answers())[0]["state"] == "waiting"
    worker.start()

    coordinator.hand_over(chat.id)

    chat.settled()
    assert bench.names == ["mail"]


@pytest.mark.parametrize("effect", ["read", "side_effect"])
@pytest.mark.parametrize("answered", [False, True])
def test_a_question_survives_a_shutdown_that_cuts_a_call_beside_it(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker, effect: str, answered: bool
) -> None:
    async def never(given: Input, context: ToolContext) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    bench.add("slow", never, effect=effect)
    bench.add("mail")
    ask_about("mail")
    provider.scripts = [calls(("slow", {}), ("mail", {})), answers("done")]
    chat.say("Go")
    until(lambda: bench.names == ["slow"])
    slow, mail = parts(chat)
    if answered:
        decide(chat, mail.pk, "approve")

    assert worker.stop(grace=0)

    slow, mail = parts(chat)
    assert (slow.state, slow.unknown_at is not None) == ("error", effect != "read")
    assert (mail.state, mail.approval) == ("pending", "approved" if answered else "waiting")
    assert sessions.message_shapes(chat.answers())[0]["state"] == "waiting"
    if not answered:
        assert chat.status().state == "waiting"
        decide(chat, mail.pk, "approve")
    worker.start()
    coordinator.hand_over(chat.id)
    until(lambda: bench.names == ["slow", "mail"])
    chat.settled()
    assert chat.answers()[0].state == "completed"
    assert chat.texts()[-1] == "done"


def test_a_stop_and_a_shutdown_together_leave_no_question(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker, unseen_stop: None
) -> None:
    async def never(given: Input, context: ToolContext) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    bench.add("slow", never)
    bench.add("mail")
    ask_about("mail")
    provider.scripts = [calls(("slow", {}), ("mail", {}))]
    chat.say("Go")
    until(lambda: bench.names == ["slow"])
    assert chat.stop()

    assert worker.stop(grace=0)

    assert chat.status().waiting == ()
    assert chat.answers()[0].state == "interrupted"
    assert chat.row.owed_at is None


def test_an_answer_counts_once(chat: Chat, provider: StubProvider, bench: Bench) -> None:
    (waiting,) = asked(chat, provider, bench, "mail")
    decide(chat, waiting, "deny")

    with pytest.raises(AlreadyDecided) as refused:
        decide(chat, waiting, "approve")

    assert refused.value.decision["action"] == "deny"


@pytest.mark.both_databases
def test_stop_ends_the_question_and_refuses_a_late_answer(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    (waiting,) = asked(chat, provider, bench, "mail")
    chat.admit("later", delivery="queue")

    assert chat.stop()

    status = chat.status()
    assert (status.state, status.paused, status.waiting) == ("idle", True, ())
    assert chat.answers()[0].state == "interrupted"
    with pytest.raises(Superseded):
        decide(chat, waiting, "approve")
    assert bench.entered == []


def test_a_call_that_nobody_asked_about_takes_no_answer(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    bench.add("free")
    provider.scripts = [calls(("free", {})), answers("done")]
    chat.say("Go")
    chat.settled()

    with pytest.raises(NotWaiting):
        decide(chat, parts(chat)[0].pk, "approve")


# The duplicate guard


@pytest.mark.parametrize(
    ("effect", "given", "waits"),
    [
        ("side_effect", {"to": "a"}, True),
        ("side_effect", {"to": "b"}, False),
        ("idempotent", {"to": "a"}, False),
    ],
)
@pytest.mark.both_databases
def test_what_may_repeat_an_unknown_effect_waits_for_a_person(
    chat: Chat, provider: StubProvider, bench: Bench, effect: str, given: Any, waits: bool
) -> None:
    async def first_is_lost(given: Input, context: ToolContext) -> str:
        if len(bench.entered) == 1:
            raise OutcomeUnknown("lost")
        return "sent"

    bench.add("mail", first_is_lost, effect=effect)
    provider.scripts = [calls(("mail", {"to": "a"})), calls(("mail", given)), answers("done")]

    chat.say("Go")

    if waits:
        until(lambda: chat.status().state == "waiting")
        lost, repeated = parts(chat)
        assert (repeated.approval_reason, repeated.earlier) == ("duplicate", lost.pk)
        assert len(bench.entered) == 1
    else:
        chat.settled()
        assert len(bench.entered) == 2


def test_a_waiting_call_shows_its_like_that_became_unknown_after_it_was_asked_about(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    async def first_is_lost(given: Input, context: ToolContext) -> str:
        if len(bench.entered) == 1:
            raise OutcomeUnknown("lost")
        return "sent"

    bench.add("mail", first_is_lost)
    ask_about("mail")
    provider.scripts = [calls(("mail", {"to": "a"}), ("mail", {"to": "a"})), answers("done")]
    chat.say("Go")
    until(lambda: len(chat.status().waiting) == 2)
    first, second = parts(chat)

    decide(chat, first.pk, "approve")
    coordinator.hand_over(chat.id)

    until(lambda: parts(chat)[0].unknown_at is not None)
    assert (parts(chat)[1].approval_reason, parts(chat)[1].earlier) == ("duplicate", first.pk)
    decide(chat, second.pk, "approve")
    coordinator.hand_over(chat.id)
    chat.settled()
    assert len(bench.entered) == 2


def test_a_call_that_was_approved_before_its_like_became_unknown_is_asked_about_again(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    gate = Gate()

    async def first_is_lost(given: Input, context: ToolContext) -> str:
        if len(bench.entered) == 1:
            await gate.wait()
            raise OutcomeUnknown("lost")
        return "sent"

    bench.add("mail", first_is_lost)
    ask_about("mail")
    provider.scripts = [calls(("mail", {"to": "a"}), ("mail", {"to": "a"})), answers("done")]
    chat.say("Go")
    until(lambda: len(chat.status().waiting) == 2)
    first, second = parts(chat)
    decide(chat, first.pk, "approve")
    coordinator.hand_over(chat.id)
    until(lambda: gate.reached)
    decide(chat, second.pk, "approve")

    gate.open()

    until(lambda: chat.status().waiting == (second.pk,) and chat.row.owner_id is None)
    again = parts(chat)[1]
    assert (again.approval_reason, again.earlier, again.decision) == ("duplicate", first.pk, None)
    assert len(bench.entered) == 1
    decide(chat, second.pk, "approve")
    coordinator.hand_over(chat.id)
    chat.settled()
    assert len(bench.entered) == 2


# Stop, loss and doubt


@pytest.fixture
def no_nudge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudge, "interrupt", lambda **_: None)


@pytest.mark.both_databases
def test_stop_during_a_tool_tells_it_and_says_what_is_not_known(
    chat: Chat, provider: StubProvider, bench: Bench, no_nudge: None
) -> None:
    told: list[str] = []

    async def wait(given: Input, context: ToolContext) -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            told.append("stopped")
            raise
        return ""

    bench.add("slow", wait)
    bench.add("quick", effect="read")
    provider.scripts = [calls(("slow", {}), ("quick", {}))]
    chat.say("Go")
    until(lambda: len(bench.entered) == 2)
    until(lambda: parts(chat)[1].state == "completed")

    chat.stop()

    until(lambda: chat.row.owner_id is None)
    assert told == ["stopped"]
    slow, quick = parts(chat)
    assert (slow.state, slow.error, slow.unknown_at is not None) == (
        "error",
        "Tool execution interrupted",
        True,
    )
    assert quick.state == "completed"
    assert chat.answers()[0].state == "interrupted"
    assert chat.status().unknown.tools == (slow.pk,)


def test_a_shutdown_during_calls_is_no_crash_and_says_what_is_not_known(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker
) -> None:
    async def wait(given: Input, context: ToolContext) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    bench.add("pay", wait)
    bench.add("look", wait, effect="read")
    provider.scripts = [calls(("pay", {}), ("look", {}))]
    chat.say("Go")
    until(lambda: len(bench.entered) == 2)

    assert worker.stop()

    assert chat.row.owner_id is None
    assert chat.row.recovery_count == 0
    assert [(part.state, part.unknown_at is not None) for part in parts(chat)] == [
        ("error", True),
        ("error", False),
    ]
    assert "recovery.claimed" not in chat.events()
    assert chat.events()[-2:] == ["step.failed", "execution.interrupted"]


@pytest.fixture
def unseen_stop(monkeypatch: pytest.MonkeyPatch, no_nudge: None) -> None:
    """A Stop that nothing cancels for: its owner finds it in the row that it locks."""
    monkeypatch.setattr(stages, "to_cancel", lambda **_: set())


def test_a_stop_that_was_stored_before_the_answer_ended_lets_no_call_be_entered(
    chat: Chat, provider: StubProvider, bench: Bench, unseen_stop: None
) -> None:
    gate = Gate()

    async def stopped_meanwhile(call: Call) -> AsyncGenerator[port.Item]:
        async for item in calls(("mail", {}), ("other", {}))(call):
            if isinstance(item, port.Finished):
                await gate.wait()
            yield item

    bench.add("mail")
    bench.add("other")
    ask_about("other")
    provider.scripts = [stopped_meanwhile]
    chat.say("Go")
    until(lambda: gate.reached)
    assert chat.stop()

    gate.open()

    assert chat.settled().state == "idle"
    assert bench.entered == []
    assert [(part.state, part.unknown_at, part.approval) for part in parts(chat)] == [("error", None, "")] * 2
    assert chat.answers()[0].state == "interrupted"
    assert len(provider.calls) == 1


def test_a_stop_while_a_call_runs_leaves_no_question_behind(
    chat: Chat, provider: StubProvider, bench: Bench, unseen_stop: None
) -> None:
    gate = Gate()

    async def wait(given: Input, context: ToolContext) -> str:
        await gate.wait()
        return "ok"

    bench.add("slow", wait)
    bench.add("mail")
    bench.add("letter")
    ask_about("mail", "letter")
    provider.scripts = [calls(("slow", {}), ("mail", {}), ("letter", {}))]
    chat.say("Go")
    until(lambda: gate.reached)
    _, mail, letter = parts(chat)
    decide(chat, letter.pk, "approve")
    assert chat.stop()

    gate.open()

    assert (chat.settled().state, chat.status().waiting) == ("idle", ())
    assert bench.names == ["slow"]
    assert [part.state for part in parts(chat)] == ["completed", "error", "error"]
    assert chat.answers()[0].state == "interrupted"
    with pytest.raises(Superseded):
        decide(chat, mail.pk, "approve")


@dataclass
class Doubt:
    """Whether the worker is in doubt, and whether anybody waited for the end of it."""

    is_there: bool = False
    was_met: bool = False

    def meet(self) -> bool:
        self.was_met = self.was_met or self.is_there
        return self.is_there

    async def calling(self, call: Call) -> AsyncGenerator[port.Item]:
        """An answer with one call, after which the worker is in doubt."""
        async for item in calls(("mail", {}))(call):
            if isinstance(item, port.Finished):
                self.is_there = True
            yield item


@pytest.fixture
def doubt(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> Doubt:
    doubt = Doubt()
    monkeypatch.setattr(ownership.Registration, "is_in_doubt", lambda _: doubt.meet())
    bench.add("mail")
    return doubt


def test_a_worker_in_doubt_enters_nothing(
    chat: Chat, provider: StubProvider, bench: Bench, doubt: Doubt
) -> None:
    provider.scripts = [doubt.calling, answers("done")]
    chat.say("Go")
    until(lambda: doubt.was_met, what="the call waits for certainty")
    beats = WorkerRow.objects.get().heartbeat_count
    until(lambda: WorkerRow.objects.get().heartbeat_count > beats + 1)
    assert [part.state for part in parts(chat)] == ["running"]
    assert bench.entered == []

    doubt.is_there = False

    chat.settled()
    assert bench.names == ["mail"]


def test_a_call_that_was_told_to_end_before_it_was_entered_was_not_run(
    chat: Chat, provider: StubProvider, bench: Bench, doubt: Doubt
) -> None:
    provider.scripts = [doubt.calling, answers("done")]
    chat.say("Go")
    until(lambda: doubt.was_met, what="the call waits for certainty")

    chat.stop()

    assert chat.settled().state == "idle"
    (call,) = parts(chat)
    assert (bench.entered, call.state, call.error, call.unknown_at) == ([], "error", INTERRUPTED, None)
    doubt.is_there = False
    chat.say("Well?")
    chat.settled()
    assert results(provider, 1) == [verdicts.NOT_RUN]


def test_a_worker_that_lost_the_session_in_its_doubt_enters_nothing(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker, doubt: Doubt
) -> None:
    provider.scripts = [doubt.calling]
    chat.say("Go")
    until(lambda: doubt.was_met, what="the call waits for certainty")
    Session.objects.filter(pk=chat.id).update(fence=100)

    doubt.is_there = False

    until(lambda: not worker.running.drains)
    assert bench.entered == []
    Session.objects.filter(pk=chat.id).update(owner=None, parked=True)


def test_hosted_calls_are_recorded_and_never_run_by_us(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        yield port.CallStarted("h", "ws_1", "web_search", hosted=True)
        yield port.CallDelta("h", '{"query": "x"}')
        yield port.PartClosed("h", {"id": "ws_1"})
        yield port.CallResult("h", "found", replay={"r": 1})
        yield port.CallStarted("i", "ws_2", "web_search", hosted=True)
        yield port.PartClosed("i")
        yield port.TextDelta("t", "answer")
        yield port.Finished("stop")

    bench.add("web_search")
    provider.scripts = [script]

    chat.say("Go")

    chat.settled()
    done, lost = parts(chat)
    assert (done.state, done.output, done.replay) == (
        "completed",
        "found",
        {"call": {"id": "ws_1"}, "result": {"r": 1}},
    )
    assert (lost.state, lost.error, lost.unknown_at is not None) == (
        "error",
        "Provider did not return a tool result",
        True,
    )
    assert bench.entered == []


def test_an_answer_that_was_paused_in_a_hosted_call_lost_nothing_and_goes_on(
    chat: Chat, provider: StubProvider, bench: Bench
) -> None:
    async def paused(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        yield port.CallStarted("h", "ws_1", "web_search", hosted=True)
        yield port.CallDelta("h", '{"query": "x"}')
        yield port.PartClosed("h", {"id": "ws_1"})
        yield port.Finished("paused")

    provider.scripts = [paused, answers("found")]

    chat.say("Go")

    assert chat.settled().state == "idle"
    (call,) = parts(chat)
    assert (call.state, call.error, call.unknown_at) == (
        "error",
        "Provider did not return a tool result",
        None,
    )
    assert chat.texts()[-1] == "found"


def test_a_shutdown_while_the_end_of_the_answer_is_stored_cancels_its_calls(
    chat: Chat, provider: StubProvider, bench: Bench, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.add("slow", never_ends)
    provider.scripts = [calls(("slow", {}))]
    complete = recorder.Recorder.complete

    def complete_during_a_shutdown(self: recorder.Recorder, *given: Any, **named: Any) -> Any:
        following = complete(self, *given, **named)
        drain = worker.running.drains[chat.id]
        worker.on_loop(_cancel(drain))
        return following

    monkeypatch.setattr(recorder.Recorder, "complete", complete_during_a_shutdown)

    chat.say("Go")

    until(lambda: chat.answers() and chat.answers()[0].completed_at, what="the end of the step")
    assert chat.answers()[0].state == "interrupted"
    assert len(provider.calls) == 1


async def never_ends(given: Input, context: ToolContext) -> str:
    await asyncio.get_running_loop().create_future()
    return ""


async def _cancel(drain: coordinator.Drain) -> None:
    drain.cancel("shutdown")
