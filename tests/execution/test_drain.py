"""What a drain does with an inbox, seen in the log and at the provider."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from sessions_app import history
from sessions_app.execution import coordinator, faults, tasks
from sessions_app.models import MessagePart, PartCheckpoint, ProviderAttempt
from sessions_app.providers import port, registry
from tests.execution.conftest import Call, Chat, Gate, StubProvider, Worker, answers, fails, looked_up, waits
from tests.support.waiting import until


@pytest.mark.both_databases
def test_a_prompt_is_answered_and_every_fact_is_in_the_log(chat: Chat, provider: StubProvider) -> None:
    provider.scripts = [answers("Hel", "lo")]

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello"]
    assert chat.events() == [
        "session.created",
        "prompt.admitted",
        "prompt.promoted",
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
    (attempt,) = chat.attempts()
    assert (attempt.state, attempt.outcome, attempt.finish) == ("settled", "completed", "stop")
    assert attempt.provider_request_id == "req-1"
    assert attempt.usage == {"input_tokens": 1, "output_tokens": 2}
    assert chat.row.output_tokens == 2


@pytest.mark.both_databases
def test_the_dispatch_is_durable_before_the_first_byte_may_leave(chat: Chat, provider: StubProvider) -> None:
    seen: list[str] = []

    async def looks(call: Call) -> AsyncGenerator[port.Item]:
        seen.append(await looked_up(lambda: chat.attempts()[0].state))
        await call.phases.dispatching()
        seen.append(await looked_up(lambda: chat.attempts()[0].state))
        yield port.TextDelta("text", "ok")
        yield port.Finished("stop")

    provider.scripts = [looks]
    chat.say("Hi")

    chat.settled()
    assert seen == ["prepared", "dispatched"]


def test_pending_steers_join_one_request_in_the_order_they_were_admitted(
    chat: Chat, provider: StubProvider
) -> None:
    chat.admit("one")
    chat.admit("two")
    chat.say("three")

    chat.settled()

    assert chat.texts() == ["one", "two", "three", "Hello"]
    assert len(provider.calls) == 1


@pytest.mark.both_databases
def test_queued_prompts_are_answered_one_by_one_in_order(chat: Chat, provider: StubProvider) -> None:
    for text in ("one", "two"):
        chat.admit(text, delivery="queue")
    chat.say("three", delivery="queue")

    chat.settled()

    assert chat.texts() == ["one", "Hello", "two", "Hello", "three", "Hello"]
    assert len(provider.calls) == 3


def test_steers_go_before_what_is_queued(chat: Chat, provider: StubProvider) -> None:
    chat.admit("later", delivery="queue")
    chat.say("now")

    chat.settled()

    assert chat.texts() == ["now", "Hello", "later", "Hello"]


@pytest.mark.both_databases
def test_a_steer_sent_during_a_step_is_read_by_the_next_one(chat: Chat, provider: StubProvider) -> None:
    gate = Gate()
    provider.scripts = [waits(gate), answers("again")]
    chat.say("one")
    until(lambda: gate.reached)

    chat.admit("two")
    gate.open()

    chat.settled()
    assert chat.texts() == ["one", "done", "two", "again"]


def test_an_admit_only_prompt_sleeps_until_something_else_runs(chat: Chat, provider: StubProvider) -> None:
    chat.say("quiet", wake=False)
    assert chat.settled().state == "idle"
    assert provider.calls == []

    chat.say("loud")

    chat.settled()
    assert chat.texts() == ["quiet", "loud", "Hello"]


def test_resume_runs_an_admit_only_prompt_without_adding_a_message(
    chat: Chat, provider: StubProvider
) -> None:
    chat.admit("quiet", wake=False)

    assert chat.resume()

    chat.settled()
    assert chat.texts() == ["quiet", "Hello"]


def test_resume_of_an_answered_session_sends_nothing(chat: Chat, provider: StubProvider) -> None:
    chat.say("Hi")
    chat.settled()

    assert not chat.resume()

    chat.settled()
    assert len(provider.calls) == 1


@pytest.mark.both_databases
def test_a_wake_delivered_again_and_again_makes_one_attempt(chat: Chat, provider: StubProvider) -> None:
    chat.admit("Hi")
    for _ in range(5):
        tasks.drain(chat.id)
    chat.settled()

    tasks.drain(chat.id)

    chat.settled()
    assert len(provider.calls) == ProviderAttempt.objects.count() == 1


def test_a_wake_for_a_deleted_session_does_no_harm(worker: Worker) -> None:
    tasks.drain("ses_never-was-there")

    until(lambda: not worker.running.drains)


def test_different_sessions_are_drained_at_once(chats: Callable[[], Chat], provider: StubProvider) -> None:
    gate = Gate()
    provider.scripts = [waits(gate)]
    both = [chats(), chats()]
    for chat in both:
        chat.say("Hi")

    until(lambda: gate.reached == 2, what="both streams")

    gate.open()
    for chat in both:
        chat.settled()


def test_a_full_worker_leaves_the_wake_in_the_queue_and_takes_it_when_there_is_room(
    chats: Callable[[], Chat],
    provider: StubProvider,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    fast: object,
) -> None:
    gate = Gate()
    provider.scripts = [waits(gate)]
    fast.HOLDFAST_DRAINS_PER_WORKER = 1  # type: ignore[attr-defined]
    monkeypatch.setattr(coordinator, "HAND_OVER_SECONDS", 0.05)
    first, second = chats(), chats()
    first.say("Hi")
    until(lambda: gate.reached)

    with pytest.raises(coordinator.NoRoom):
        second.say("Hi")

    gate.open()
    first.settled()
    coordinator.hand_over(second.id)
    second.settled()
    assert second.texts() == ["Hi", "done"]


@pytest.mark.both_databases
def test_a_wake_during_a_drain_is_not_lost(chat: Chat, provider: StubProvider, worker: Worker) -> None:
    gate = Gate()
    provider.scripts = [waits(gate), answers("second")]
    chat.say("one")
    until(lambda: gate.reached)
    for text in ("two", "three"):
        chat.say(text, delivery="queue")

    gate.open()

    chat.settled()
    until(lambda: not worker.running.drains)
    assert chat.texts() == ["one", "done", "two", "second", "three", "second"]


@pytest.mark.parametrize("words", [200, 2000])
def test_events_do_not_grow_with_the_length_of_an_answer(
    chat: Chat, provider: StubProvider, words: int
) -> None:
    provider.scripts = [answers(*["word "] * words)]

    chat.say("Hi")

    chat.settled()
    assert len(chat.events()) == 12
    assert chat.texts()[1] == "word " * words


def test_blank_fragments_open_no_part_and_are_kept_before_the_first_word(
    chat: Chat, provider: StubProvider
) -> None:
    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        yield port.ReasoningDelta("r", "  \n")
        yield port.TextDelta("t", "\n")
        yield port.TextDelta("t", "")
        yield port.TextDelta("t", "Hi")
        yield port.Finished("stop")

    provider.scripts = [script]
    chat.say("Hi")

    chat.settled()
    assert list(MessagePart.objects.values_list("kind", "text")) == [("text", "\nHi")]


@pytest.mark.both_databases
def test_text_that_cannot_be_stored_is_cleaned_at_the_edge(chat: Chat, provider: StubProvider) -> None:
    provider.scripts = [answers("a\x00b", "\ud83d", "\ude00", "\udc00!")]

    chat.say("Hi")

    chat.settled()
    assert chat.texts()[1] == "ab\U0001f600!"


def test_reasoning_becomes_a_part_of_its_own_with_what_the_provider_wants_back(
    chat: Chat, provider: StubProvider
) -> None:
    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        yield port.ReasoningDelta("r", "hm")
        yield port.PartClosed("r", {"signature": "s"})
        yield port.TextDelta("t", "Hi")
        yield port.Finished("stop")

    provider.scripts = [script, answers("again")]
    chat.say("one")
    chat.settled()
    chat.say("two")
    chat.settled()

    reasoning = MessagePart.objects.get(kind="reasoning")
    assert (reasoning.text, reasoning.complete, reasoning.replay) == ("hm", True, {"signature": "s"})
    blocks = provider.calls[1].request.turns[1].blocks  # type: ignore[union-attr]
    assert [block.kind for block in blocks] == ["reasoning", "text"]


# Ends that are not an answer


@pytest.mark.parametrize(
    ("error_class", "state", "outcome", "message_state"),
    [
        ("not_sent", "settled", "not_sent", "failed"),
        ("rejected", "settled", "failed", "failed"),
        ("failed", "settled", "failed", "failed"),
        ("ambiguous", "unknown", "", "unknown"),
        ("partial", "unknown", "", "unknown"),
    ],
)
def test_an_attempt_ends_as_what_is_proved_and_is_sent_once(
    chat: Chat, provider: StubProvider, error_class: str, state: str, outcome: str, message_state: str
) -> None:
    provider.scripts = [fails(error_class, "bad_request")]

    chat.say("Hi")

    status = chat.settled()
    (attempt,) = chat.attempts()
    assert (attempt.state, attempt.outcome) == (state, outcome)
    assert chat.answers()[0].state == message_state
    assert status.state == ("needs_decision" if state == "unknown" else "idle")
    assert len(provider.calls) == 1


def test_partial_output_is_closed_and_kept(chat: Chat, provider: StubProvider) -> None:
    provider.scripts = [fails("partial", "cut", after=("Hel", "lo"))]

    chat.say("Hi")

    chat.settled()
    assert chat.texts() == ["Hi", "Hello"]
    assert not MessagePart.objects.filter(ended_at=None).exists()
    assert not PartCheckpoint.objects.exists()


def test_a_stream_that_ends_without_a_terminal_marker_is_unknown(chat: Chat, provider: StubProvider) -> None:
    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        yield port.TextDelta("t", "half")

    provider.scripts = [script]
    chat.say("Hi")

    assert chat.settled().state == "needs_decision"
    assert chat.attempts()[0].state == "unknown"


@pytest.mark.both_databases
def test_what_waited_behind_an_unknown_outcome_is_held_and_a_new_prompt_goes_through(
    chat: Chat, provider: StubProvider
) -> None:
    gate = Gate()

    provider.scripts = [fails("ambiguous", gate=gate), answers("fresh")]
    chat.say("one")
    until(lambda: gate.reached)
    chat.admit("waiting", delivery="queue")
    gate.open()
    status = chat.settled()
    assert (status.state, status.pending.queue) == ("needs_decision", 1)

    chat.say("new")

    chat.settled()
    assert chat.texts() == ["one", "", "new", "fresh", "waiting", "fresh"]
    said = provider.calls[1].request.turns
    assert [turn.role for turn in said] == ["user", "user", "user"]
    assert "unknown" in said[1].text  # type: ignore[union-attr]


def test_an_empty_answer_is_an_error_with_a_next_step(chat: Chat, provider: StubProvider) -> None:
    provider.scripts = [answers()]

    chat.say("Hi")

    chat.settled()
    assert chat.answers()[0].state == "failed"
    assert chat.error()["reason"] == "empty"
    assert chat.attempts()[0].outcome == "completed"


def test_a_failed_step_lets_the_next_queued_prompt_go(chat: Chat, provider: StubProvider) -> None:
    provider.scripts = [fails("failed", "provider_error"), answers("fine")]
    chat.admit("one", delivery="queue")

    chat.say("two", delivery="queue")

    chat.settled()
    assert chat.texts() == ["one", "", "two", "fine"]


def test_tools_that_cannot_be_offered_fail_the_step_and_the_chat_says_why(
    chat: Chat, provider: StubProvider, settings: Any
) -> None:
    settings.HOLDFAST_TOOLS = ("no.such.tools",)

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert "HOLDFAST_TOOLS: 'no.such.tools' cannot be used" in chat.error()["message"]
    assert (chat.error()["reason"], provider.calls, chat.row.recovery_count) == ("configuration", [], 0)


@pytest.mark.parametrize("where", ["select", "lower", "attempts_for_newest_prompt"])
def test_a_fault_before_a_request_is_made_fails_the_step_once_and_tells_nobody_what_was_written(
    chat: Chat, provider: StubProvider, monkeypatch: pytest.MonkeyPatch, caplog: Any, where: str
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a secret plan")

    monkeypatch.setattr(history, where, broken)

    chat.say("One")

    assert chat.settled().state == "idle"
    assert (chat.answers()[0].state, chat.error()["message"]) == ("failed", faults.NOT_MADE)
    assert (chat.attempts(), chat.row.recovery_count, chat.row.owed_at) == ([], 0, None)
    assert "step.not_prepared" in caplog.text
    assert "secret" not in caplog.text
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("sent", "words", "state", "error_class"),
    [
        (False, (), "settled", "not_sent"),
        (True, (), "unknown", "ambiguous"),
        (True, ("half",), "unknown", "partial"),
    ],
)
def test_a_fault_in_reading_an_answer_ends_the_step_as_what_is_proved(
    chat: Chat, provider: StubProvider, sent: bool, words: tuple[str, ...], state: str, error_class: str
) -> None:
    async def breaks(call: Call) -> AsyncGenerator[port.Item]:
        if sent:
            await call.phases.dispatching()
        for word in words:
            yield port.TextDelta("text", word)
        raise ValueError("a secret plan")

    provider.scripts = [breaks]

    chat.say("Hi")

    assert chat.settled().state == ("needs_decision" if sent else "idle")
    (attempt,) = chat.attempts()
    assert attempt.error is not None
    assert (attempt.state, attempt.error["error_class"]) == (state, error_class)
    assert "in this server" in chat.error()["message"]
    assert chat.row.recovery_count == 0


def test_a_model_that_cannot_be_asked_fails_the_step_and_says_what_to_do(
    chat: Chat, provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(model: str) -> None:
        raise registry.UnknownProvider("stub")

    monkeypatch.setattr(registry, "resolve", gone)

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.answers()[0].state == "failed"
    assert chat.error()["reason"] == "configuration"
    assert "Choose one of" in chat.error()["message"]
    assert chat.row.owed_at is None
    assert chat.attempts() == []


def test_headers_are_stored_although_nothing_follows_them(chat: Chat, provider: StubProvider) -> None:
    gate = Gate()
    provider.scripts = [waits(gate)]
    chat.say("Hi")

    until(lambda: any(attempt.headers_at for attempt in chat.attempts()), what="the headers")

    assert chat.events()[-1] == "attempt.response_started"
    gate.open()
    chat.settled()
    assert chat.events().count("attempt.response_started") == 1
