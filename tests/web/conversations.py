"""Writes the facts of conversations as a worker would, through the log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.utils import timezone

from schema import events
from schema.attempts import AttemptError, ErrorClass, Reason, StepError
from sessions_app import identity, inbox, log, sessions
from sessions_app.models import PartCheckpoint


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One session whose facts a test writes one by one."""

    session_id: str

    def prompt(self, text: str, **options: str) -> str:
        """Admit a prompt, as pending."""
        admission = sessions.prompt(session_id=self.session_id, text=text, now=_now(), **options)  # type: ignore[arg-type]
        return admission.prompt.pk

    def promote(self) -> None:
        with log.session_transaction(self.session_id, now=_now()) as tx:
            inbox.promote(tx)
            inbox.clear(tx)

    def begin_answer(self) -> str:
        message = identity.new_message_id()
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(events.StepStarted(message=message, agent="default", model="demo:scripted", step=1))
        return message

    def begin_text(self, message: str, so_far: str = "", *, index: int = 0) -> str:
        part = identity.new_part_id()
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(events.TextStarted(message=message, part=part, index=index))
            if so_far:
                PartCheckpoint.objects.create(part_id=part, fence=tx.session.fence, text=so_far)
        return part

    def end_text(self, message: str, part: str, text: str) -> None:
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(events.TextEnded(message=message, part=part, text=text))

    def reason(self, message: str, text: str, *, index: int = 0) -> None:
        part = identity.new_part_id()
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(events.ReasoningStarted(message=message, part=part, index=index))
            tx.append(events.ReasoningEnded(message=message, part=part, text=text, complete=True))

    def end_answer(self, message: str, *, finish: str = "stop") -> None:
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(events.StepEnded(message=message, finish=finish))

    def fail(
        self,
        message: str,
        *,
        outcome: Literal["failed", "interrupted", "unknown"],
        reason: Reason,
        detail: str = "",
        error_class: ErrorClass | None = None,
    ) -> None:
        error = StepError(reason=reason, message=detail, error_class=error_class)
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(events.StepFailed(message=message, outcome=outcome, error=error))

    # --- tool calls

    def begin_call(self, message: str, name: str, *, index: int = 0, raw: str = "{}") -> str:
        part = identity.new_part_id()
        self.happen(
            events.ToolInputStarted(
                message=message, part=part, index=index, call_id=f"call_{index}", name=name
            ),
            events.ToolInputEnded(message=message, part=part, raw=raw),
        )
        return part

    def ask(
        self,
        message: str,
        part: str,
        given: dict[str, Any],
        *,
        because: Literal["agent", "duplicate"] = "agent",
        earlier: str | None = None,
    ) -> None:
        self.happen(
            events.ToolApprovalRequested(
                message=message,
                part=part,
                input=given,
                input_digest="d",
                effect="side_effect",
                because=because,
                earlier=earlier,
            )
        )

    def answer(
        self, message: str, part: str, action: Literal["approve", "deny"], *, reason: str | None = None
    ) -> None:
        self.happen(
            events.ToolApprovalDecided(message=message, part=part, action=action, by="ann", reason=reason)
        )

    def enter(self, message: str, part: str, given: dict[str, Any]) -> None:
        self.happen(
            events.ToolCalled(message=message, part=part, input=given, input_digest="d", effect="side_effect")
        )

    def progress(self, message: str, part: str, text: str) -> None:
        self.happen(events.ToolProgress(message=message, part=part, text=text))

    def succeed(self, message: str, part: str, output: str) -> None:
        self.happen(events.ToolSucceeded(message=message, part=part, output=output))

    def fail_call(self, message: str, part: str, error: str, *, unknown: bool = False) -> None:
        self.happen(events.ToolFailed(message=message, part=part, error=error, unknown=unknown))

    def mark(self, message: str, part: str, *, reason: str | None = None) -> None:
        self.happen(
            events.ToolDecided(
                message=message, part=part, action="mark_done", by="ann", policy=False, reason=reason
            )
        )

    def call(self, message: str, name: str, *, given: dict[str, Any], output: str, index: int = 0) -> str:
        """A call from its first word to its result."""
        part = self.begin_call(message, name, index=index)
        self.enter(message, part, given)
        self.succeed(message, part, output)
        return part

    # --- attempts

    def lose_attempt(self, message: str, *, answered: bool = False, reason: Reason = "crash") -> str:
        """An attempt of the message whose outcome is unknown."""
        attempt = identity.new_attempt_id()
        self.happen(
            events.AttemptPrepared(
                attempt=attempt,
                message=message,
                purpose="step",
                ordinal=1,
                provider="demo",
                model="scripted",
                request_digest="d",
            ),
            events.AttemptDispatched(attempt=attempt, message=message),
        )
        if answered:
            self.happen(events.AttemptResponseStarted(attempt=attempt, message=message, status=200))
        error = AttemptError(
            error_class="partial" if answered else "ambiguous", reason=reason, message="lost"
        )
        self.happen(events.AttemptUnknown(attempt=attempt, message=message, error=error))
        return attempt

    def decide(
        self,
        message: str,
        attempt: str,
        action: Literal["retry", "abandon"],
        *,
        policy: bool = False,
        reason: str | None = None,
    ) -> None:
        self.happen(
            events.AttemptDecided(
                attempt=attempt, message=message, action=action, by="ann", policy=policy, reason=reason
            )
        )

    def schedule_retry(self, message: str, *, attempt: int, at: str, reason: str) -> None:
        self.happen(events.RetryScheduled(message=message, attempt=attempt, at=at, reason=reason))

    def happen(self, *facts: events.EventData) -> None:
        with log.session_transaction(self.session_id, now=_now()) as tx:
            for fact in facts:
                tx.append(fact)

    def exchange(self, question: str, answer: str) -> str:
        """A prompt with its complete answer; returns the answer's message id."""
        self.prompt(question)
        self.promote()
        message = self.begin_answer()
        part = self.begin_text(message)
        self.end_text(message, part, answer)
        self.end_answer(message)
        return message


def begin(user_id: int, *, title: str = "", now: datetime | None = None) -> Conversation:
    created = sessions.create(user_id=user_id, title=title, now=now or _now())
    return Conversation(session_id=created.session.pk)


def _now() -> datetime:
    return timezone.now()
