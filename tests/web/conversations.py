"""Writes the facts of conversations as a worker would, through the log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.utils import timezone

from schema.attempts import ErrorClass, Reason, StepError
from schema.events import (
    ReasoningEnded,
    ReasoningStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
)
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
            tx.append(StepStarted(message=message, agent="default", model="demo:scripted", step=1))
        return message

    def begin_text(self, message: str, so_far: str = "", *, index: int = 0) -> str:
        part = identity.new_part_id()
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(TextStarted(message=message, part=part, index=index))
            if so_far:
                PartCheckpoint.objects.create(part_id=part, fence=tx.session.fence, text=so_far)
        return part

    def end_text(self, message: str, part: str, text: str) -> None:
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(TextEnded(message=message, part=part, text=text))

    def reason(self, message: str, text: str, *, index: int = 0) -> None:
        part = identity.new_part_id()
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(ReasoningStarted(message=message, part=part, index=index))
            tx.append(ReasoningEnded(message=message, part=part, text=text, complete=True))

    def end_answer(self, message: str, *, finish: str = "stop") -> None:
        with log.session_transaction(self.session_id, now=_now()) as tx:
            tx.append(StepEnded(message=message, finish=finish))

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
            tx.append(StepFailed(message=message, outcome=outcome, error=error))

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
