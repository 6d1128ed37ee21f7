"""The durable facts of one step, as they happen. Synchronous: it runs on a database thread."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from pydantic import JsonValue

from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptDispatched,
    AttemptFirstOutput,
    AttemptIdentified,
    AttemptResponseStarted,
    AttemptSettled,
    AttemptUnknown,
    EventData,
    ExecutionInterrupted,
    ReasoningEnded,
    ReasoningStarted,
    RetryScheduled,
    StepEnded,
    StepFailed,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgress,
    ToolSucceeded,
)
from sessions_app import history, hooks, identity, inbox
from sessions_app.execution import planning, retries, settling, stages
from sessions_app.execution.settling import CallMade, Entering, Next, Result, Settled
from sessions_app.log import Held, SessionTransaction, session_transaction
from sessions_app.providers.port import Askable, Finished
from sessions_app.tools import arguments
from sessions_app.tools import calls as tool_calls

Kind = Literal["text", "reasoning", "tool"]

_CUT_SHORT: Final = ("length", "content_filter")

NO_HOSTED_RESULT: Final = "Provider did not return a tool result"


@dataclass(kw_only=True)
class Part:
    """A part of the open message while it is written. A tool part's text is its arguments."""

    id: str
    kind: Kind
    index: int
    call_id: str = ""
    name: str = ""
    hosted: bool = False
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
        if self.kind == "tool":
            return ToolInputStarted(
                message=message_id,
                part=self.id,
                index=self.index,
                call_id=self.call_id,
                name=self.name,
                hosted=self.hosted,
            )
        kind = TextStarted if self.kind == "text" else ReasoningStarted
        return kind(message=message_id, part=self.id, index=self.index)

    def ended(self, message_id: str) -> EventData:
        """The end of what is written: text, reasoning, or the arguments of a call."""
        if self.kind == "tool":
            return ToolInputEnded(message=message_id, part=self.id, raw=self.text(), replay=self.replay)
        if self.kind == "text":
            return TextEnded(message=message_id, part=self.id, text=self.text(), replay=self.replay)
        return ReasoningEnded(
            message=message_id,
            part=self.id,
            text=self.text(),
            complete=self.is_complete,
            replay=self.replay,
        )

    def call(self, *, is_at_limit: bool) -> CallMade:
        raw = self.text()
        return CallMade(
            part_id=self.id,
            call_id=self.call_id,
            name=self.name,
            raw=raw,
            hosted=self.hosted,
            is_cut_short=is_at_limit and (not raw.strip() or arguments.parse(raw) is None),
        )


class Recorder:
    """Writes one step's facts under the owner's fence.

    Each method is one transaction. Each raises FenceLost or SessionGone, having written nothing, when
    the session is not this worker's any more. What was committed is remembered even if the caller was
    cancelled while it waited.
    """

    def __init__(self, held: Held, frame: stages.Frame, *, sending: stages.Sending | None = None) -> None:
        self.held = held
        self.frame = frame
        self.message_id = frame.message_id
        self.parts: list[Part] = []
        self.response_id: str | None = None
        self.usage: Usage | None = None
        """What the provider has counted so far."""
        self._sending = sending
        self._arrived: AttemptResponseStarted | None = None
        self.is_dispatched = False
        self._has_response = False
        self._has_output = False

    # Before the wire, and on it

    def dispatch(self, *, now: datetime) -> None:
        """Record that the request is about to leave. A crash from here on leaves its outcome unknown."""
        with self._transaction(now) as tx:
            tx.append(AttemptDispatched(attempt=self._attempt_id, message=self.message_id))
        self.is_dispatched = True

    def response_started(self, *, status: int, request_id: str | None, now: datetime) -> None:
        """Headers arrived. It is stored with the next fact; the caller sees to it when none comes soon."""
        self._arrived = AttemptResponseStarted(
            attempt=self._attempt_id,
            message=self.message_id,
            status=status,
            provider_request_id=request_id,
            at=now.isoformat().replace("+00:00", "Z"),
        )
        self._has_response = True

    def store_response(self, *, now: datetime) -> None:
        """Store that headers arrived, unless another fact took it along."""
        if self._arrived is not None:
            with self._transaction(now):
                pass

    def identified(self, *, now: datetime) -> None:
        """The provider named its response: from here on it can be asked what became of it."""
        assert self.response_id is not None
        with self._transaction(now) as tx:
            tx.append(
                AttemptIdentified(
                    attempt=self._attempt_id,
                    message=self.message_id,
                    provider_response_id=self.response_id,
                )
            )

    def open_part(
        self, *, kind: Kind, now: datetime, call_id: str = "", name: str = "", hosted: bool = False
    ) -> Part:
        """Open the next part, ending in the same transaction those that were completed before it."""
        part = Part(
            id=identity.new_part_id(),
            kind=kind,
            index=len(self.parts),
            call_id=call_id,
            name=name,
            hosted=hosted,
        )
        ended = self._unended(only_complete=True)
        self._store(
            [
                *([] if self._has_output else [self._first_output()]),
                *(each.ended(self.message_id) for each in ended),
                part.started(self.message_id),
            ],
            now=now,
        )
        self._has_output = True
        for each in ended:
            each.is_ended = True
        self.parts.append(part)
        return part

    def _first_output(self) -> EventData:
        return AttemptFirstOutput(
            attempt=self._attempt_id, message=self.message_id, provider_response_id=self.response_id
        )

    def hosted_called(self, part: Part, *, now: datetime) -> None:
        """The provider has the arguments of a hosted call and runs it."""
        given = arguments.parse(part.text()) or {}
        called = ToolCalled(
            message=self.message_id,
            part=part.id,
            input=given,
            input_digest=planning.digest(part.name, given),
            effect="side_effect",
        )
        self._store([part.ended(self.message_id), called], now=now)
        part.is_ended = True

    def hosted_result(
        self, part: Part, *, output: str, is_error: bool, replay: Mapping[str, JsonValue], now: datetime
    ) -> None:
        """The provider told the result of a hosted call; it is replayed beside its call."""
        kept: dict[str, JsonValue] = {"call": part.replay or {}, "result": dict(replay)}
        result: EventData = (
            ToolFailed(message=self.message_id, part=part.id, error=output, unknown=False)
            if is_error
            else ToolSucceeded(message=self.message_id, part=part.id, output=output, replay=kept)
        )
        self._store([result], now=now)

    # The end of the attempt

    def complete(self, finished: Finished, *, now: datetime, shutting_down: bool) -> Next:
        """Store the end of a completed attempt with what becomes of its calls, and what comes next."""
        for part in self.parts:
            part.is_complete = True
        next_ = self._complete(finished, now=now, shutting_down=shutting_down)
        for part in self.parts:
            part.is_ended = True
        self._request.is_settled = True
        return next_

    def _complete(self, finished: Finished, *, now: datetime, shutting_down: bool) -> Next:
        with self._transaction(now) as tx:
            local = self._local_calls(finished.finish)
            self._end_parts(tx)
            self._fail_hosted(tx, is_paused=finished.finish == "paused")
            tx.append(
                AttemptSettled(
                    attempt=self._attempt_id,
                    message=self.message_id,
                    outcome="completed",
                    finish=finished.finish,
                    usage=finished.usage,
                    provider_response_id=self.response_id,
                    may_be_billed=True,
                )
            )
            if not local:
                self._end_step(tx, finished)
                if finished.finish == "paused" and self.frame.has_steps_left:
                    inbox.owe(tx, not_before=tx.now)
                return Settled(self._go_on(tx, shutting_down=shutting_down))
            entering = settling.plan_calls(tx, local, self.frame)
            if entering:
                return Entering(entering)
            return settling.go_on(tx, self.frame, shutting_down=shutting_down)

    def fail(
        self, error: AttemptError, *, usage: Usage | None, now: datetime, shutting_down: bool
    ) -> "bool | retries.Retry":
        """Store the end of an attempt that did not complete, by what is proved about it.

        Answers whether to go on draining, or the retry that was scheduled in the same transaction: also at a
        shutdown, so that the next process has it.
        """
        is_unknown = error.error_class in ("ambiguous", "partial")
        with self._transaction(now) as tx:
            self._end_parts(tx)
            tx.append(self._unknown(error, usage) if is_unknown else self._failed(error, usage))
            self._request.is_settled = True
            retry = self._retry(error, now=now)
            if retry is not None:
                self._schedule(tx, retry)
                return retry
            self._fail_calls(tx)
            tx.append(self._step_failed(error, is_unknown=is_unknown, usage=usage))
            if is_unknown:
                stages.outcome_unknown(tx, self._unknown_outcome())
            return self._go_on(tx, shutting_down=shutting_down)

    def _retry(self, error: AttemptError, *, now: datetime) -> "retries.Retry | None":
        if self._has_output:
            return None
        return retries.plan(
            error,
            message_id=self.message_id,
            ordinal=self._request.ordinal,
            now=now,
            jitter=random.uniform(-1, 1),  # noqa: S311 - spreads load, guards nothing
        )

    def _schedule(self, tx: SessionTransaction, retry: "retries.Retry") -> None:
        tx.append(
            RetryScheduled(
                message=self.message_id,
                attempt=retry.ordinal,
                at=retry.at.isoformat().replace("+00:00", "Z"),
                reason=retry.reason,
            )
        )
        inbox.owe(tx, not_before=retry.at)

    # Calls

    def settle(self, results: Sequence[Result], *, now: datetime, shutting_down: bool) -> Next:
        """Store how calls ended, and what comes next: others to enter, a person to wait for, the end."""
        with self._transaction(now) as tx:
            settling.store_results(tx, self.message_id, results)
            return settling.go_on(tx, self.frame, shutting_down=shutting_down)

    def progress(self, lines: Mapping[str, str], *, now: datetime) -> None:
        with self._transaction(now) as tx:
            for part_id, text in lines.items():
                tx.append(ToolProgress(message=self.message_id, part=part_id, text=text))

    # Interruption

    def interrupt(
        self, *, reason: Literal["user", "shutdown"], now: datetime, results: Sequence[Result] = ()
    ) -> bool:
        """Close what is open because somebody stopped it, and release. True: go on with newer input.

        ``results`` are calls that ended before they could be told to stop. A question to a person survives a
        shutdown, and its step with it.
        """
        with self._transaction(now) as tx:
            settling.store_results(tx, self.message_id, results)
            self._end_parts(tx)
            stays = reason == "shutdown" and settling.asks_somebody(tx, self.message_id)
            has_unknown = tool_calls.fail_unfinished(tx, message_id=self.message_id, only_entered=stays)
            if self._sending is not None and not self._sending.is_settled:
                tx.append(
                    AttemptSettled(
                        attempt=self._attempt_id,
                        message=self.message_id,
                        outcome="interrupted",
                        usage=self.usage,
                        provider_response_id=self.response_id,
                        may_be_billed=self.is_dispatched,
                    )
                )
            if not stays:
                tx.append(stages.interrupted(self.message_id, reason, usage=self.usage))
            return self._leave(tx, reason, has_unknown=has_unknown)

    def leave_running(self, *, now: datetime) -> bool:
        """A shutdown cuts an answer that its provider keeps and goes on with: the next process asks for it."""
        error = AttemptError(error_class="partial", reason="shutdown", message="The server was restarted.")
        with self._transaction(now) as tx:
            self._end_parts(tx)
            tx.append(self._unknown(error, self.usage))
            self._fail_calls(tx)
            tx.append(self._step_failed(error, is_unknown=True, usage=self.usage))
            tx.append(ExecutionInterrupted(message=self.message_id, reason="shutdown"))
            inbox.owe_inquiry(tx, attempt_id=self._attempt_id)
            stages.hand_on(tx)
            return False

    def _leave(
        self, tx: SessionTransaction, reason: Literal["user", "shutdown"], *, has_unknown: bool
    ) -> bool:
        if reason == "user":
            return stages.stop(tx, message=self.message_id)
        tx.append(ExecutionInterrupted(message=self.message_id, reason="shutdown"))
        if has_unknown:
            unknown = hooks.Unknown(source=self.message_id, message_id=self.message_id, is_shutdown=True)
            stages.outcome_unknown(tx, unknown)
        else:
            inbox.owe(tx, not_before=tx.now)
        if settling.has_answers(tx):
            inbox.owe(tx, not_before=tx.now)
        stages.hand_on(tx)
        return False

    # Pieces

    @property
    def _request(self) -> stages.Sending:
        assert self._sending is not None, "a step that only settles calls sends nothing"
        return self._sending

    @property
    def _attempt_id(self) -> str:
        return self._request.request.attempt

    def _local_calls(self, finish: str) -> list[CallMade]:
        local = [part for part in self.parts if part.kind == "tool" and not part.hosted]
        is_cut = finish in _CUT_SHORT
        return [part.call(is_at_limit=is_cut and part is local[-1]) for part in local]

    def _end_step(self, tx: SessionTransaction, finished: Finished) -> None:
        error = _incomplete(finished, has_output=any(part.kind != "reasoning" for part in self.parts))
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

    def _unended(self, *, only_complete: bool = False) -> list[Part]:
        return [part for part in self.parts if not part.is_ended and (part.is_complete or not only_complete)]

    def _end_parts(self, tx: SessionTransaction) -> None:
        for part in self._unended():
            tx.append(part.ended(self.message_id))

    def _store(self, events: Sequence[EventData], *, now: datetime) -> None:
        with self._transaction(now) as tx:
            for event in events:
                tx.append(event)

    def _fail_calls(self, tx: SessionTransaction) -> bool:
        return tool_calls.fail_unfinished(tx, message_id=self.message_id)

    def _fail_hosted(self, tx: SessionTransaction, *, is_paused: bool) -> None:
        """An answer that its provider paused in a call lost nothing: the model takes it up in the next step."""
        if any(part.hosted for part in self.parts):
            tool_calls.fail_unfinished(
                tx,
                message_id=self.message_id,
                error=NO_HOSTED_RESULT,
                only_hosted=True,
                is_known=is_paused,
            )

    def _unknown(self, error: AttemptError, usage: Usage | None) -> AttemptUnknown:
        return AttemptUnknown(
            attempt=self._attempt_id,
            message=self.message_id,
            error=error,
            usage=usage,
            provider_response_id=self.response_id,
        )

    @property
    def lost_class(self) -> Literal["ambiguous", "partial"]:
        """What is proved of a request that was sent and whose answer was lost."""
        return "partial" if self._has_response or self._has_output else "ambiguous"

    @property
    def can_be_asked(self) -> bool:
        """Whether the provider keeps the response and named it."""
        return isinstance(self._request.provider, Askable) and self.response_id is not None

    def _unknown_outcome(self) -> hooks.Unknown:
        return hooks.Unknown(
            source=self._attempt_id, message_id=self.message_id, can_be_asked=self.can_be_asked
        )

    def _failed(self, error: AttemptError, usage: Usage | None) -> AttemptSettled:
        return AttemptSettled(
            attempt=self._attempt_id,
            message=self.message_id,
            outcome="not_sent" if error.error_class == "not_sent" else "failed",
            error=error,
            usage=usage,
            provider_response_id=self.response_id,
            may_be_billed=error.error_class == "failed",
        )

    def _step_failed(self, error: AttemptError, *, is_unknown: bool, usage: Usage | None) -> StepFailed:
        outcome: Literal["unknown", "failed"] = "unknown" if is_unknown else "failed"
        return StepFailed(
            message=self.message_id,
            outcome=outcome,
            error=StepError(
                reason=error.reason,
                message=error.message,
                error_class=error.error_class,
                code=error.code,
            ),
            notice=history.notice_for(outcome),
            usage=usage,
        )

    @contextmanager
    def _transaction(self, now: datetime) -> Iterator[SessionTransaction]:
        """Under the lock of the session, which makes one of two threads take along what arrived."""
        arrived = None
        try:
            with session_transaction(self.held.session_id, now=now, held=self.held) as tx:
                arrived, self._arrived = self._arrived, None
                if arrived is not None:
                    tx.append(arrived)
                yield tx
        except BaseException:
            self._arrived = arrived or self._arrived
            raise


def _incomplete(finished: Finished, *, has_output: bool) -> StepError | None:
    """Why a completed attempt still leaves no answer, in words with a next step; None when it does."""
    if finished.finish == "content_filter":
        return StepError(
            reason="content_filter",
            message="Stopped by the provider's filter. Edit the message and send it again.",
        )
    if not has_output:
        return StepError(reason="empty", message="The model returned nothing. Send the message again.")
    return None
