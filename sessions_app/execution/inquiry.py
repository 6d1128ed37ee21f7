"""Asking a provider what became of an unknown attempt, and going on with its real answer."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from django.db.models.functions import Length
from django.utils import timezone

from schema.attempts import AttemptError
from schema.events import AttemptAsked, AttemptResumed, EventData, ExecutionInterrupted
from schema.ids import AttemptId
from sessions_app import hooks, inbox, ownership
from sessions_app.attempts import asking
from sessions_app.execution import checkpoints, retries, stages
from sessions_app.execution.control import Control, StopReason
from sessions_app.execution.database import DatabaseThreads, Here
from sessions_app.execution.recorder import Part, Recorder
from sessions_app.execution.step import Step
from sessions_app.log import Held, SessionTransaction, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.providers import port
from sessions_app.tools.port import Toolset

GONE: Final = "The response ended where it could not be read on."


class _Kept:
    """The provider of an attempt, which answers with what it kept of it: nothing is sent a second time."""

    def __init__(self, keeper: port.Askable, attempt: ProviderAttempt) -> None:
        self.name = attempt.provider
        self._keeper = keeper
        self._attempt = attempt

    def digest(self, request: port.ModelRequest) -> str:
        return self._attempt.request_digest

    def stream(self, request: port.ModelRequest, phases: port.Phases) -> AsyncIterator[port.Item]:
        return self.ask(self._attempt.provider_response_id, follow=True)

    def ask(self, response_id: str, *, follow: bool) -> AsyncIterator[port.Item]:
        return self._keeper.ask(response_id, follow=follow)

    async def cancel(self, response_id: str) -> None:
        await self._keeper.cancel(response_id)


def begin(*, held: Held, attempt_id: str, toolset: Toolset, now: datetime) -> "Asked | bool":
    """What is asked about; or whether to go on draining, when the question is settled or cannot be put.

    Raises FenceLost or SessionGone.
    """
    with session_transaction(held.session_id, now=now, held=held) as tx:
        attempt = ProviderAttempt.objects.filter(
            pk=attempt_id, session_id=held.session_id, state="unknown"
        ).first()
        keeper = None if attempt is None else asking.find_askable(attempt)
        if attempt is not None and keeper is not None and asking.may_reopen(tx, attempt):
            return Asked(attempt=attempt, keeper=keeper, toolset=toolset)
        _let_go(tx, attempt)
        return stages.proceed(tx)


def _let_go(tx: SessionTransaction, attempt: ProviderAttempt | None) -> None:
    """The unknown stands: what follows is up to policy, unless somebody decided."""
    inbox.clear(tx)
    if attempt is not None and attempt.decided_at is None:
        stages.outcome_unknown(
            tx, hooks.Unknown(source=attempt.pk, message_id=attempt.message_id or "", is_counted=True)
        )


class Asked:
    """An unknown attempt and who can be asked about it."""

    def __init__(self, *, attempt: ProviderAttempt, keeper: port.Askable, toolset: Toolset) -> None:
        self.attempt = attempt
        self.message_id = attempt.message_id or ""
        self.frame = stages.frame_of(message_id=self.message_id, toolset=toolset)
        self.sending = stages.Sending(
            provider=_Kept(keeper, attempt),
            request=port.ModelRequest(attempt=AttemptId(attempt.pk), model=attempt.model, turns=()),
            ordinal=attempt.ordinal,
        )
        self.received = sum(
            MessagePart.objects.filter(message_id=self.message_id)
            .exclude(kind="tool")
            .annotate(length=Length("text"))
            .values_list("length", flat=True)
        )
        """Code points of text that are stored already."""


class Inquiry(Step):
    """Reads the answer of an unknown attempt from its beginning, and goes on with it as any step does.

    What was stored of it stays until as much has come again, so that a provider that falls silent takes
    nothing away. Nothing is sent that could start or repeat anything.
    """

    recorder: "InquiryRecorder"

    def __init__(self, asked: Asked, *, held: Held, control: Control, database: DatabaseThreads) -> None:
        prepared = stages.Prepared(frame=asked.frame, sending=asked.sending)
        super().__init__(prepared, held=held, control=control, database=database)
        self.recorder = InquiryRecorder(held, asked)
        self._received = asked.received
        self._came: list[port.Item] = []
        self._length = 0
        self._unanswered: port.Forgotten | port.CannotTell | None = None

    async def _stream(self) -> port.ProviderError | None:
        try:
            return await super()._stream()
        except (port.Forgotten, port.CannotTell) as unanswered:
            self._unanswered = unanswered
            return port.ProviderError(
                AttemptError(error_class="partial", reason="cut", message=str(unanswered) or GONE)
            )

    async def _take(self, item: port.Item) -> None:
        if self.recorder.is_open:
            await super()._take(item)
            return
        self._came.append(item)
        if isinstance(item, port.TextDelta | port.ReasoningDelta):
            self._length += len(item.text)
        has_output = not isinstance(item, port.ResponseIdentified)
        if isinstance(item, port.Finished) or (has_output and self._length >= self._received):
            await self._open_again()

    async def _open_again(self) -> None:
        """Open the message anew with what came, so that no crash takes away text that was durable before."""
        came, self._came = self._came, []
        with self.recorder.gathering():
            database, self._database = self._database, Here()
            try:
                for item in came:
                    await super()._take(item)
            finally:
                self._database = database
        await self._database.run(self.recorder.reopen, keeps_parts=False, now=timezone.now())
        for part in self.recorder.growing_parts():
            self._show(part, 0, part.text())

    def _show(self, part: Part, offset: int, text: str) -> None:
        """Nobody is told of a part before it is durable."""
        if self.recorder.is_open:
            super()._show(part, offset, text)

    async def _identify(self, response_id: str) -> None:
        """It is known, and durable, since it was asked for."""

    async def _ended(self, error: port.ProviderError | None) -> bool | retries.Retry:
        if not self.recorder.is_open:
            if self._unanswered is not None:
                return await self._database.run(
                    self.recorder.give_up,
                    unanswered=self._unanswered,
                    now=timezone.now(),
                    shutting_down=self._control.is_shutting_down,
                )
            await self._database.run(self.recorder.reopen, keeps_parts=True, now=timezone.now())
        return await super()._ended(error)

    async def _stopped(self) -> bool:
        if self.recorder.is_open:
            return await super()._stopped()
        reason = self._control.stop_reason or "shutdown"
        return await self._database.run(self.recorder.leave, reason=reason, now=timezone.now())


class InquiryRecorder(Recorder):
    """Writes what asking about an unknown attempt changes."""

    def __init__(self, held: Held, asked: Asked) -> None:
        super().__init__(held, asked.frame, sending=asked.sending)
        self.response_id = asked.attempt.provider_response_id
        self.is_open = False
        """Whether the message is written on; what is recorded before is gathered, or nothing."""
        self._gathered: list[EventData] | None = None
        self.is_dispatched = True
        self._has_output = True

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Parts that are written in this block are stored by ``reopen``; if it fails, by nobody."""
        self._gathered = []
        try:
            yield
        except BaseException:
            self._gathered = None
            self.parts.clear()
            raise

    def _store(self, events: Sequence[EventData], *, now: datetime) -> None:
        if self._gathered is None:
            super()._store(events, now=now)
        else:
            self._gathered += events

    def growing_parts(self) -> list[Part]:
        return [part for part in self._unended() if part.kind != "tool"]

    def reopen(self, *, keeps_parts: bool, now: datetime) -> None:
        """The provider tells: the attempt is unknown no more, and its message is written on.

        A crash from here on leaves the attempt as unknown as before, to be asked about again, and all that
        was gathered as durable as the text that it replaces.
        """
        gathered, self._gathered = self._gathered or [], None
        with self._transaction(now) as tx:
            tx.append(
                AttemptResumed(attempt=self._attempt_id, message=self.message_id, keeps_parts=keeps_parts)
            )
            for event in gathered:
                tx.append(event)
            checkpoints.store(held=self.held, texts=[(part.id, part.text()) for part in self.growing_parts()])
            inbox.clear(tx)
            if tx.session.hold_reason == "undecided" and not ownership.has_undecided(tx.session.pk):
                inbox.lift(tx, because="resume")
        self.is_open = True

    def give_up(
        self, *, unanswered: port.Forgotten | port.CannotTell, now: datetime, shutting_down: bool
    ) -> bool:
        """The provider cannot tell: the unknown stands, and policy decides. True: go on draining."""
        with self._transaction(now) as tx:
            tx.append(
                AttemptAsked(
                    attempt=self._attempt_id,
                    message=self.message_id,
                    answer="forgotten" if isinstance(unanswered, port.Forgotten) else "cannot_tell",
                    detail=str(unanswered),
                )
            )
            _let_go(tx, ProviderAttempt.objects.get(pk=self._attempt_id))
            return self._go_on(tx, shutting_down=shutting_down)

    def leave(self, *, reason: StopReason, now: datetime) -> bool:
        """Somebody stopped the asking. After a shutdown it is owed still, and the next process asks."""
        with self._transaction(now) as tx:
            if reason == "user":
                return stages.stop(tx, message=self.message_id)
            tx.append(ExecutionInterrupted(message=self.message_id, reason="shutdown"))
            stages.hand_on(tx)
            return False

    def _unknown_outcome(self) -> hooks.Unknown:
        return hooks.Unknown(source=self._attempt_id, message_id=self.message_id, is_counted=True)
