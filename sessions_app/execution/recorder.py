"""The durable facts of one step, as they happen. Synchronous: it runs on a database thread."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptDispatched,
    AttemptFirstOutput,
    AttemptResponseStarted,
    AttemptSettled,
    AttemptUnknown,
    EventData,
    ExecutionInterrupted,
    ReasoningEnded,
    ReasoningStarted,
    StepEnded,
    StepFailed,
    TextEnded,
    TextStarted,
)
from sessions_app import history, hooks, identity, inbox
from sessions_app.execution import stages
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.providers.port import Finished

Kind = Literal["text", "reasoning"]


@dataclass(kw_only=True)
class Part:
    """A part of the open message while it is written."""

    id: str
    kind: Kind
    index: int
    fragments: list[str] = field(default_factory=list)
    length: int = 0
    is_complete: bool = False
    replay: dict[str, JsonValue] | None = None
    is_ended: bool = False

    def add(self, text: str) -> None:
        self.fragments.append(text)
        self.length += len(text)

    def text(self) -> str:
        whole = "".join(self.fragments)
        self.fragments[:] = [whole]
        return whole

    def started(self, message_id: str) -> EventData:
        kind = TextStarted if self.kind == "text" else ReasoningStarted
        return kind(message=message_id, part=self.id, index=self.index)

    def ended(self, message_id: str) -> EventData:
        if self.kind == "text":
            return TextEnded(message=message_id, part=self.id, text=self.text(), replay=self.replay)
        return ReasoningEnded(
            message=message_id,
            part=self.id,
            text=self.text(),
            complete=self.is_complete,
            replay=self.replay,
        )


class Recorder:
    """Writes one step's facts under the owner's fence.

    Each method is one transaction. Each raises FenceLost or SessionGone, having written nothing, when
    the session is not this worker's any more. What was committed is remembered even if the caller was
    cancelled while it waited.
    """

    def __init__(self, prepared: stages.Prepared) -> None:
        self.held = prepared.held
        self.message_id = prepared.message_id
        self.attempt_id = prepared.request.attempt
        self.parts: list[Part] = []
        self.response_id: str | None = None
        self._dispatched = False
        self._has_output = False
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether the step's end is stored."""
        return self._is_over

    def dispatch(self, *, now: datetime) -> None:
        """Record that the request is about to leave. A crash from here on leaves its outcome unknown."""
        with self._transaction(now) as tx:
            tx.append(AttemptDispatched(attempt=self.attempt_id, message=self.message_id))
        self._dispatched = True

    def response_started(self, *, status: int, request_id: str | None, now: datetime) -> None:
        with self._transaction(now) as tx:
            tx.append(
                AttemptResponseStarted(
                    attempt=self.attempt_id,
                    message=self.message_id,
                    status=status,
                    provider_request_id=request_id,
                )
            )

    def open_part(self, *, kind: Kind, now: datetime) -> Part:
        """Open the next part, ending in the same transaction those that were completed before it."""
        part = Part(id=identity.new_part_id(), kind=kind, index=len(self.parts))
        with self._transaction(now) as tx:
            if not self._has_output:
                tx.append(
                    AttemptFirstOutput(
                        attempt=self.attempt_id,
                        message=self.message_id,
                        provider_response_id=self.response_id,
                    )
                )
            ended = [done for done in self.parts if done.is_complete and not done.is_ended]
            for done in ended:
                tx.append(done.ended(self.message_id))
            tx.append(part.started(self.message_id))
        self._has_output = True
        for done in ended:
            done.is_ended = True
        self.parts.append(part)
        return part

    def complete(self, finished: Finished, *, now: datetime, shutting_down: bool) -> bool:
        """Store the end of a completed attempt, and what comes next. True: go on draining."""
        for part in self.parts:
            part.is_complete = True
        with self._transaction(now) as tx:
            self._end_parts(tx)
            tx.append(
                AttemptSettled(
                    attempt=self.attempt_id,
                    message=self.message_id,
                    outcome="completed",
                    finish=finished.finish,
                    usage=finished.usage,
                    provider_response_id=self.response_id,
                    may_be_billed=True,
                )
            )
            self._end_step(tx, finished)
            goes_on = self._go_on(tx, shutting_down=shutting_down)
        self._is_over = True
        return goes_on

    def refuse_tools(self, *, now: datetime, usage: Usage | None, shutting_down: bool) -> bool:
        """The model asked for a tool although none was offered: the step fails with what was written."""
        error = StepError(
            reason="bad_response",
            message="The model asked for a tool, and no tools are available in this session.",
        )
        with self._transaction(now) as tx:
            self._end_parts(tx)
            tx.append(
                AttemptSettled(
                    attempt=self.attempt_id,
                    message=self.message_id,
                    outcome="completed",
                    finish="tool_calls",
                    usage=usage,
                    provider_response_id=self.response_id,
                    may_be_billed=True,
                )
            )
            tx.append(StepFailed(message=self.message_id, outcome="failed", error=error, usage=usage))
            goes_on = self._go_on(tx, shutting_down=shutting_down)
        self._is_over = True
        return goes_on

    def fail(
        self, error: AttemptError, *, usage: Usage | None, now: datetime, shutting_down: bool
    ) -> bool:
        """Store the end of an attempt that did not complete, by what is proved about it."""
        is_unknown = error.error_class in ("ambiguous", "partial")
        with self._transaction(now) as tx:
            self._end_parts(tx)
            tx.append(self._unknown(error, usage) if is_unknown else self._failed(error, usage))
            tx.append(
                StepFailed(
                    message=self.message_id,
                    outcome="unknown" if is_unknown else "failed",
                    error=StepError(
                        reason=error.reason,
                        message=error.message,
                        error_class=error.error_class,
                        code=error.code,
                    ),
                    notice=history.notice_for("unknown" if is_unknown else "failed"),
                    usage=usage,
                )
            )
            if is_unknown and not hooks.outcome_unknown(tx):
                inbox.hold_undecided(tx)
            goes_on = self._go_on(tx, shutting_down=shutting_down)
        self._is_over = True
        return goes_on

    def interrupt(self, *, reason: Literal["user", "shutdown"], now: datetime) -> bool:
        """Close what is open because somebody stopped it, and release. True: go on with newer input."""
        with self._transaction(now) as tx:
            self._end_parts(tx)
            tx.append(
                AttemptSettled(
                    attempt=self.attempt_id,
                    message=self.message_id,
                    outcome="interrupted",
                    provider_response_id=self.response_id,
                    may_be_billed=self._dispatched,
                )
            )
            tx.append(self._interrupted(reason))
            goes_on = self._leave(tx, reason)
        self._is_over = True
        return goes_on

    def _leave(self, tx: SessionTransaction, reason: Literal["user", "shutdown"]) -> bool:
        if reason == "user":
            return stages.stop(tx, message=self.message_id)
        tx.append(ExecutionInterrupted(message=self.message_id, reason="shutdown"))
        inbox.owe(tx, not_before=tx.now)
        stages.hand_on(tx)
        return False

    def _interrupted(self, reason: Literal["user", "shutdown"]) -> StepFailed:
        by_user = reason == "user"
        return StepFailed(
            message=self.message_id,
            outcome="interrupted",
            error=StepError(
                reason="interrupted" if by_user else "shutdown",
                message="Stopped by the user." if by_user else "The server was restarted.",
            ),
            notice=history.notice_for("interrupted" if by_user else "shutdown"),
        )

    def _end_step(self, tx: SessionTransaction, finished: Finished) -> None:
        error = _incomplete(finished, has_text=any(part.kind == "text" for part in self.parts))
        if error is None:
            tx.append(StepEnded(message=self.message_id, finish=finished.finish, usage=finished.usage))
        else:
            tx.append(
                StepFailed(message=self.message_id, outcome="failed", error=error, usage=finished.usage)
            )

    def _go_on(self, tx: SessionTransaction, *, shutting_down: bool) -> bool:
        if shutting_down:
            stages.hand_on(tx)
            return False
        return stages.proceed(tx)

    def _end_parts(self, tx: SessionTransaction) -> None:
        for part in self.parts:
            if not part.is_ended:
                tx.append(part.ended(self.message_id))

    def _unknown(self, error: AttemptError, usage: Usage | None) -> AttemptUnknown:
        return AttemptUnknown(
            attempt=self.attempt_id,
            message=self.message_id,
            error=error,
            usage=usage,
            provider_response_id=self.response_id,
        )

    def _failed(self, error: AttemptError, usage: Usage | None) -> AttemptSettled:
        return AttemptSettled(
            attempt=self.attempt_id,
            message=self.message_id,
            outcome="not_sent" if error.error_class == "not_sent" else "failed",
            error=error,
            usage=usage,
            provider_response_id=self.response_id,
            may_be_billed=error.error_class == "failed",
        )

    def _transaction(self, now: datetime) -> Any:
        return session_transaction(self.held.session_id, now=now, held=self.held)


def _incomplete(finished: Finished, *, has_text: bool) -> StepError | None:
    """Why a completed attempt still leaves no answer, in words with a next step; None when it does."""
    if finished.finish == "content_filter":
        return StepError(
            reason="content_filter",
            message="Stopped by the provider's filter. Edit the message and send it again.",
        )
    if not has_text:
        return StepError(reason="empty", message="The model returned nothing. Send the message again.")
    return None
