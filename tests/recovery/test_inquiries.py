"""Asking what became of an unknown outcome: after a crash by itself, else when somebody wants to know."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest

from schema.attempts import AttemptError, Usage
from schema.events import StepStarted
from sessions_app import identity
from sessions_app.log import replay
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.providers import port, registry
from sessions_app.tools import reconcile
from sessions_app.tools import registry as tools
from sessions_app.tools.declare import tool
from sessions_app.tools.port import Input, Reconciled, ToolContext
from tests.api.callers import Caller, refused
from tests.recovery import scenes
from tests.recovery.losses import Lost
from tests.support import world

# Providers name their responses beside the log here.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rows_of_its_own]


@dataclass
class Keeper:
    """A provider that keeps its responses and answers with these items, or an error."""

    name: str = "keeper"
    items: list[port.Item] = field(default_factory=list)
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    async def ask(self, response_id: str, *, follow: bool) -> AsyncGenerator[port.Item]:
        self.asked.append(response_id)
        for item in self.items:
            yield item
        if self.error is not None:
            raise self.error

    async def cancel(self, response_id: str) -> None: ...


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    keeper = Keeper(items=[port.TextDelta("text", "Hello"), port.Finished("stop", Usage(output_tokens=7))])
    monkeypatch.setattr(registry, "get_provider", lambda name, model: keeper)
    return keeper


def kept(attempt_id: str) -> ProviderAttempt:
    """The attempt as if its provider had named its response."""
    ProviderAttempt.objects.filter(pk=attempt_id).update(provider_response_id="resp_1")
    return ProviderAttempt.objects.get(pk=attempt_id)


# After a crash


@pytest.mark.parametrize("policy", ["continue", "ask"])
def test_a_lost_attempt_is_asked_about_before_policy_goes_on(keeper: Keeper, policy: Any) -> None:
    lost = Lost(recovery_policy=policy).streaming().text("Hel")
    kept(lost.attempt)
    lost.dies()

    claim = lost.recovered()

    row = world.row(lost.id)
    assert (claim.outcome, claim.continuation) == ("resumed", "")
    assert row.inquiry == lost.attempt
    assert row.owed_at is not None
    assert world.wakes() == [lost.id]
    attempt = ProviderAttempt.objects.get(pk=lost.attempt)
    assert (attempt.state, attempt.decision) == ("unknown", None)


def test_policy_off_asks_nobody(keeper: Keeper) -> None:
    lost = Lost(recovery_policy="off").streaming()
    kept(lost.attempt)

    assert lost.dies().recovered().outcome == "closed"

    assert world.row(lost.id).inquiry == ""


def test_an_attempt_whose_response_has_no_name_goes_by_policy(keeper: Keeper) -> None:
    assert Lost(recovery_policy="continue").streaming().dies().recovered().outcome == "continued"


def test_a_session_over_its_budget_is_parked_and_asks_nobody(keeper: Keeper, settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_BUDGET = 0
    lost = Lost(recovery_policy="continue").streaming()
    kept(lost.attempt)

    assert lost.dies().recovered().outcome == "parked"

    assert world.row(lost.id).inquiry == ""


def test_hosted_calls_of_the_lost_answer_are_asked_about_with_it(keeper: Keeper) -> None:
    lost = Lost(recovery_policy="continue").streaming(hosted_tools=True)
    lost.call("web_search", hosted=True, effect="side_effect")
    kept(lost.attempt)

    assert lost.dies().recovered().outcome == "resumed"

    assert world.row(lost.id).inquiry == lost.attempt


# When somebody wants to know


def ask(caller: Caller, attempt: str) -> Any:
    return caller.post(f"/attempts/{attempt}/reconcile")


def test_a_worker_is_to_ask_while_nothing_came_after_the_answer(
    ann: Caller, session_id: str, keeper: Keeper
) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    kept(attempt)

    for _ in range(2):
        assert ask(ann, attempt).status_code == 202

    assert world.row(session_id).inquiry == attempt
    assert world.wakes() == [session_id]
    assert keeper.asked == []


def test_after_a_newer_turn_only_the_attempt_is_settled(ann: Caller, session_id: str, keeper: Keeper) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id, received="Hel")
    kept(attempt)
    scenes.say(session_id, "Next")
    scenes.answer(session_id, "Hi")
    messages = ann.get(f"/sessions/{session_id}/messages").json()["results"]

    answered = ask(ann, attempt)

    assert answered.status_code == 202
    told = answered.json()
    assert (told["state"], told["outcome"], told["decision"]) == ("settled", "completed", None)
    assert told["usage"] == {"output_tokens": 7}
    assert ann.get(f"/sessions/{session_id}/messages").json()["results"] == messages
    assert ann.get("/attempts?needs_decision=true").json()["results"] == []
    refused(ask(ann, attempt), 409, "not_unknown")
    assert ProviderAttempt.objects.get(pk=attempt).unknown_at is None


@pytest.mark.parametrize("error", [port.Forgotten("Gone."), port.CannotTell("It still runs.")])
def test_an_answer_that_is_not_conclusive_changes_nothing(
    ann: Caller, session_id: str, keeper: Keeper, error: Exception
) -> None:
    keeper.items, keeper.error = [port.TextDelta("text", "Hel")], error
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    kept(attempt)
    scenes.say(session_id, "Next")
    before = world.everything_of(session_id)

    assert ask(ann, attempt).status_code == 202
    assert ask(ann, attempt).status_code == 202

    assert world.everything_of(session_id) == before
    assert keeper.asked == ["resp_1", "resp_1"]


def test_a_response_that_failed_settles_the_attempt_as_failed(
    ann: Caller, session_id: str, keeper: Keeper
) -> None:
    failure = AttemptError(error_class="failed", reason="provider_error", message="Oops.")
    keeper.items, keeper.error = [], port.ProviderError(failure)
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    kept(attempt)
    scenes.say(session_id, "Next")

    assert ask(ann, attempt).json()["outcome"] == "failed"


def test_who_can_be_asked_is_told_beforehand(
    ann: Caller, session_id: str, keeper: Keeper, findings: list[Reconciled]
) -> None:
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)
    attempt = scenes.unknown_attempt(session_id)

    def can_be_asked() -> tuple[bool, bool]:
        calls = ann.get(f"/tool-calls?session={session_id}").json()["results"]
        return ann.get(f"/attempts/{attempt}").json()["can_be_asked"], calls[0]["can_be_asked"]

    assert can_be_asked() == (False, True), "the provider never named its response"
    kept(attempt)
    assert can_be_asked() == (True, True)
    assert ask_tool(ann, call).status_code == 202
    assert can_be_asked() == (True, False)


def test_who_cannot_be_asked_is_told(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)

    refused(ask(ann, attempt), 409, "cannot_ask")


def test_what_is_known_is_not_asked_about(ann: Caller, session_id: str, keeper: Keeper) -> None:
    scenes.say(session_id)
    scenes.answer(session_id)

    refused(ask(ann, ProviderAttempt.objects.get().pk), 409, "not_unknown")


def test_another_users_attempt_does_not_exist(
    ann: Caller, bob: Caller, session_id: str, keeper: Keeper
) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)

    refused(ask(bob, attempt), 404, "attempt_not_found")


# Tools


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> list[Reconciled]:
    """What the tool send_mail finds out, from the last on."""
    found = [Reconciled(happened="yes", output="Sent at noon.")]

    async def look(given: Input, context: ToolContext) -> Reconciled:
        assert given == {"a": 1}
        assert context.idempotency_key.startswith("prt_")
        return found[-1]

    @tool(reconcile=look)
    def send_mail(a: int) -> str:
        """Sends."""
        raise AssertionError("it is asked, never entered")

    monkeypatch.setattr(tools, "local", lambda: {"send_mail": send_mail})
    return found


def ask_tool(caller: Caller, call: str) -> Any:
    return caller.post(f"/tool-calls/{call}/reconcile")


def test_a_tool_that_knows_settles_its_call_and_the_model_goes_on(
    ann: Caller, session_id: str, findings: list[Reconciled]
) -> None:
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)

    answered = ask_tool(ann, call)

    assert answered.status_code == 202
    decision = answered.json()["decision"]
    assert (decision["action"], decision["by"]) == ("mark_done", "the tool send_mail")
    kept_decision = MessagePart.objects.get(pk=call).decision
    assert kept_decision is not None
    assert kept_decision["result"] == "Sent at noon."
    assert world.wakes() == [session_id]
    assert replay.rebuild(session_id, check=True) == []


def test_a_tool_that_knows_it_did_not_happen_says_so(
    ann: Caller, session_id: str, findings: list[Reconciled]
) -> None:
    findings.append(Reconciled(happened="no"))
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)

    assert ask_tool(ann, call).json()["decision"]["action"] == "mark_not_done"
    refused(ask_tool(ann, call), 409, "already_decided")


def test_a_tool_that_cannot_tell_changes_nothing(
    ann: Caller, session_id: str, findings: list[Reconciled]
) -> None:
    findings.append(Reconciled(happened="cannot_tell"))
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)
    before = world.everything_of(session_id)

    assert ask_tool(ann, call).status_code == 202

    assert world.everything_of(session_id) == before


def test_what_a_tool_tells_is_stored_clean_and_short(
    ann: Caller, session_id: str, findings: list[Reconciled]
) -> None:
    findings.append(Reconciled(happened="yes", output="Sent\0 " + 100_000 * "x"))
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)

    result = ask_tool(ann, call).json()["decision"]["result"]

    assert result.startswith("Sent xxx")
    assert len(result) == reconcile.MAX_OUTPUT_CHARACTERS


def test_a_tool_that_fails_cannot_tell_and_its_words_are_not_logged(
    ann: Caller, session_id: str, findings: list[Reconciled], caplog: pytest.LogCaptureFixture
) -> None:
    findings.clear()
    scenes.say(session_id)
    call = scenes.unknown_call(session_id)

    assert ask_tool(ann, call).json()["decision"] is None

    (told,) = [record for record in caplog.records if record.getMessage() == "tools.reconcile.failed"]
    assert (told.exc_info, vars(told)["error"]) == (None, "IndexError")


def test_a_tool_without_memory_cannot_be_asked(ann: Caller, session_id: str) -> None:
    scenes.say(session_id)

    refused(ask_tool(ann, scenes.unknown_call(session_id, "no_such_tool")), 409, "cannot_ask")
    refused(ask_tool(ann, scenes.waiting_call(session_id)), 409, "not_unknown")


def test_a_step_that_began_meanwhile_is_a_newer_turn(ann: Caller, session_id: str, keeper: Keeper) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    kept(attempt)
    started = StepStarted(message=identity.new_message_id(), agent="default", model="demo:scripted", step=2)
    scenes.write(session_id, [started])

    assert ask(ann, attempt).json()["state"] == "settled"

    assert world.row(session_id).inquiry == ""


def test_while_a_provider_is_to_be_asked_nothing_is_left_to_a_person(
    ann: Caller, session_id: str, keeper: Keeper
) -> None:
    scenes.say(session_id)
    attempt = scenes.unknown_attempt(session_id)
    kept(attempt)
    assert ann.get(f"/sessions/{session_id}/status").json()["state"] == "needs_decision"

    ask(ann, attempt)

    assert ann.get(f"/sessions/{session_id}/status").json()["state"] == "queued"
    assert ann.get("/sessions?needs_decision=true").json()["results"] == []
