"""An unknown attempt is asked about before anything goes on; its provider gets no second request."""

from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.execution import checkpoints, coordinator, inquiry
from sessions_app.models import ProviderAttempt
from sessions_app.providers import background
from tests.execution.conftest import Chat, Worker
from tests.support.processes import free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import (
    Entry,
    answer,
    document,
    response_document,
    response_events,
)
from tests.support.waiting import until

FORGOTTEN = document({"error": {"message": "Response not found."}}, status=404)
RUNNING = document(response_document(status="in_progress"))


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with StubProcess.running(free_port()) as stub:
        yield stub


@pytest.fixture
def chat(worker: Worker, stub: StubProcess, settings: Any, monkeypatch: Any, django_user_model: Any) -> Chat:
    settings.OPENAI_BASE_URL = f"{stub.url}/v1"
    monkeypatch.setattr(background, "DELAYS", (0.01,) * 5)
    return Chat(django_user_model.objects.create_user("ann"), model="openai-responses:gpt")


def cut(*words: str) -> Any:
    """The beginning of a response, and then a connection that breaks."""
    return answer(*response_events(*words, "lost", status=None)[:-1], end="reset")


def posts(stub: StubProcess) -> list[Entry]:
    """What asks for a new response."""
    return [entry for entry in stub.journal() if (entry.method, entry.path) == ("POST", "/v1/responses")]


def cancelled(stub: StubProcess) -> list[str]:
    return [entry.path for entry in stub.journal() if entry.path.endswith("/cancel")]


def gets(stub: StubProcess) -> list[str]:
    return [entry.path for entry in stub.journal() if entry.method == "GET"]


def only_attempt(chat: Chat) -> ProviderAttempt:
    (attempt,) = chat.attempts()
    return attempt


def test_a_response_that_ended_meanwhile_is_the_answer(chat: Chat, stub: StubProcess) -> None:
    stub.script(cut("Hel"), document(response_document("Hello", " there")))

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello there"]
    attempt = only_attempt(chat)
    assert (attempt.state, attempt.outcome, attempt.decision) == ("settled", "completed", None)
    assert attempt.usage == {"input_tokens": 5, "output_tokens": 2}
    assert chat.row.output_tokens == 2
    assert chat.answers()[0].state == "completed"
    assert (len(posts(stub)), gets(stub)) == (1, ["/v1/responses/resp_1"])


def test_a_response_that_still_runs_is_followed_to_its_end(chat: Chat, stub: StubProcess) -> None:
    words = ("Hel", "lo", " there")
    stub.script(cut("Hel"), RUNNING, answer(*response_events(*words, first=1)))

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello there"]
    assert len(posts(stub)) == 1
    assert gets(stub) == ["/v1/responses/resp_1", "/v1/responses/resp_1?stream=true&starting_after=0"]


def test_following_that_breaks_goes_on_behind_the_last_event(chat: Chat, stub: StubProcess) -> None:
    words = ("Hel", "lo", " there")
    stub.script(
        cut("Hel"),
        RUNNING,
        answer(*response_events(*words, first=1, status=None)[:2], end="reset"),
        RUNNING,
        answer(*response_events(*words, first=3)),
    )

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello there"]
    assert gets(stub)[-1].endswith("?stream=true&starting_after=2")


def test_a_stream_that_leaves_something_out_is_only_waited_for(chat: Chat, stub: StubProcess) -> None:
    words = ("Hel", "lo", " there")
    stub.script(
        cut("Hel"),
        RUNNING,
        answer(*response_events(*words, first=4)),
        document(response_document(*words)),
    )

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello there"]


def test_what_the_provider_forgot_stays_unknown_with_its_text(chat: Chat, stub: StubProcess) -> None:
    stub.script(cut("Hel"), FORGOTTEN)

    chat.say("Hi")

    assert chat.settled().state == "needs_decision"
    assert chat.texts() == ["Hi", "Hel"]
    assert only_attempt(chat).state == "unknown"
    assert chat.events()[-1] == "attempt.asked"
    assert (len(posts(stub)), len(gets(stub))) == (1, 1)


def test_policy_goes_on_once_when_the_provider_forgot(chat: Chat, stub: StubProcess, settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "continue"
    stub.script(cut("Hel"), FORGOTTEN)

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert [attempt.state for attempt in chat.attempts()] == ["unknown", "settled"]
    assert chat.texts()[-1] == "Hello there."
    assert len(posts(stub)) == 2


def test_a_provider_that_cannot_be_reached_is_given_up_after_some_tries(
    chat: Chat, stub: StubProcess
) -> None:
    stub.script(cut("Hel"), *[document({}, status=503)] * 6)

    chat.say("Hi")

    assert chat.settled().state == "needs_decision"
    assert len(gets(stub)) == 6


def test_a_response_that_failed_fails_the_step_and_keeps_its_text(chat: Chat, stub: StubProcess) -> None:
    stub.script(
        cut("Hel"),
        document(response_document(status="failed", error={"code": "server_error", "message": "Oops."})),
    )

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hel"]
    assert (only_attempt(chat).outcome, chat.answers()[0].state) == ("failed", "failed")


def test_calls_that_the_answer_holds_are_run(chat: Chat, stub: StubProcess) -> None:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "calculator",
        "arguments": '{"expression": "1+1"}',
    }
    stub.script(cut("Let me see."), document(response_document(output=[call])))

    chat.say("1+1?")

    assert chat.settled().state == "idle"
    assert [attempt.outcome for attempt in chat.attempts()] == ["completed", "completed"]
    sent = posts(stub)[1].json()["input"]
    assert [item["output"] for item in sent if item.get("type") == "function_call_output"] == ["2"]


def test_text_that_was_durable_stays_so_while_the_answer_is_read_anew(
    chat: Chat, stub: StubProcess, monkeypatch: Any
) -> None:
    """No checkpoint is written beside it: what is there was stored with the reopening."""
    monkeypatch.setattr(checkpoints, "write", lambda **_: None)
    stub.script(
        cut("Hel", "lo"),
        RUNNING,
        answer(*response_events("Hel", "lo", " there", first=1, status=None), end="hold"),
    )

    chat.say("Hi")
    until(lambda: "attempt.resumed" in chat.events(), what="the answer is read")

    assert chat.texts() == ["Hi", "Hello"]
    assert chat.stop()
    chat.settled()
    assert chat.texts() == ["Hi", "Hello there"]


def test_a_stop_while_the_message_is_opened_again_closes_it(
    chat: Chat, stub: StubProcess, worker: Worker, monkeypatch: Any
) -> None:
    reopen = inquiry.InquiryRecorder.reopen

    def reopened(self: inquiry.InquiryRecorder, **how: Any) -> None:
        reopen(self, **how)
        chat.stop()
        worker.running.loop.call_soon_threadsafe(worker.running.drains[chat.id].cancel, "user")
        until(lambda: worker.running.drains[chat.id].stop_reason, what="the Stop is there")

    monkeypatch.setattr(inquiry.InquiryRecorder, "reopen", reopened)
    stub.script(cut("Hel"), RUNNING, answer(*response_events("Hel", "lo", first=1, status=None), end="hold"))

    chat.say("Hi")

    assert chat.settled().state == "idle"
    assert chat.answers()[0].state == "interrupted"
    assert only_attempt(chat).outcome == "interrupted"


def test_nothing_is_asked_where_policy_is_off(chat: Chat, stub: StubProcess, settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "off"
    stub.script(cut("Hel"))

    chat.say("Hi")

    chat.settled()
    assert gets(stub) == []
    assert only_attempt(chat).state == "unknown"


def test_prompts_wait_while_the_provider_is_asked(chat: Chat, stub: StubProcess) -> None:
    words = ("Hel", "lo")
    stub.script(cut("Hel"), RUNNING, answer(*response_events(*words, first=1, status=None), end="hold"))
    chat.say("Hi")
    until(lambda: len(gets(stub)) == 2, what="the following")

    chat.say("And?")

    assert chat.status().pending.steer == 1
    assert chat.stop()
    chat.settled()
    assert len(posts(stub)) == 1


def test_stop_while_nobody_answers_leaves_the_unknown_to_a_person(chat: Chat, stub: StubProcess) -> None:
    stub.script(cut("Hel"), answer(end="hold", headers={"content-type": "application/json"}))
    chat.say("Hi")
    until(lambda: len(gets(stub)) == 1, what="the question")

    assert chat.stop()

    assert chat.settled().state == "needs_decision"
    assert chat.row.inquiry == ""
    assert chat.texts() == ["Hi", "Hel"]


def test_the_id_is_durable_before_the_first_output(chat: Chat, stub: StubProcess) -> None:
    stub.script(answer(response_events()[0], end="hold"))
    chat.say("Hi")

    until(lambda: chat.attempts()[-1:] and only_attempt(chat).provider_response_id, what="the id")

    assert only_attempt(chat).provider_response_id == "resp_1"
    assert only_attempt(chat).state == "dispatched"
    assert chat.stop()
    chat.settled()


def test_stop_ends_a_kept_response_at_its_provider_too(chat: Chat, stub: StubProcess) -> None:
    stub.script(answer(*response_events("Hel", status=None), end="hold"))
    chat.say("Hi")
    until(lambda: chat.texts()[1:] and only_attempt(chat).state == "streaming", what="the first word")

    assert chat.stop()

    chat.settled()
    assert until(lambda: cancelled(stub), what="the provider is told") == ["/v1/responses/resp_1/cancel"]
    assert only_attempt(chat).outcome == "interrupted"


def test_a_shutdown_leaves_a_kept_response_running_and_the_next_process_goes_on_with_it(
    chat: Chat, stub: StubProcess, worker: Worker, settings: Any
) -> None:
    settings.HOLDFAST_RECOVERY_BUDGET = 0
    stub.script(answer(*response_events("Hel", status=None), end="hold"))
    chat.say("Hi")
    until(lambda: chat.texts()[1:] and only_attempt(chat).state == "streaming", what="the first word")

    assert worker.stop()
    assert (only_attempt(chat).state, chat.status().state) == ("unknown", "queued")
    stub.script(RUNNING, answer(*response_events("Hel", "lo", first=1)))
    worker.start()
    coordinator.hand_over(chat.id)

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello"]
    assert only_attempt(chat).outcome == "completed"
    assert len(posts(stub)) == 1


def test_an_answer_that_was_shut_down_in_the_middle_of_asking_is_asked_for_again(
    chat: Chat, stub: StubProcess, worker: Worker
) -> None:
    stub.script(cut("Hel"), answer(end="hold", headers={"content-type": "application/json"}))
    chat.say("Hi")
    until(lambda: len(gets(stub)) == 1, what="the question")

    assert worker.stop()
    stub.script(document(response_document("Hello")))
    worker.start()
    coordinator.hand_over(chat.id)

    assert chat.settled().state == "idle"
    assert chat.texts() == ["Hi", "Hello"]
    assert len(posts(stub)) == 1
