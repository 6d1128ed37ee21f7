"""One step: one physical request, streamed into durable parts and live deltas."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from pydantic import JsonValue

from schema.attempts import AttemptError
from schema.text import Cleaner, clean
from sessions_app import figures
from sessions_app.execution import calls, faults, retries, stages
from sessions_app.execution.control import Control
from sessions_app.execution.database import DatabaseThreads, Runs
from sessions_app.execution.recorder import Kind, Part, Recorder
from sessions_app.live import publish
from sessions_app.log import FenceLost, Held, SessionGone
from sessions_app.providers.port import (
    Askable,
    CallDelta,
    CallResult,
    CallStarted,
    CannotTell,
    Finished,
    Forgotten,
    Item,
    PartClosed,
    ProviderError,
    ReasoningDelta,
    ResponseIdentified,
    TextDelta,
    UsageNoted,
)
from sessions_app.providers.scrub import is_storable

JOIN_SECONDS: Final = 0.05
"""How long the fact that headers arrived may wait for the first output, to be stored with it."""


def _kept(replay: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What goes back with an answer is kept as it came, or not at all."""
    return dict(replay) if is_storable(dict(replay)) else {}


def _look_at(storing: "asyncio.Future[None]") -> None:
    """Whatever kept the fact from being stored keeps the next one from it too, which tells the step."""
    if not storing.cancelled():
        storing.exception()


_NOT_FAULTS = (FenceLost, SessionGone, DatabaseError, InterfaceError, CannotTell, Forgotten)
"""What ends a stream and is told elsewhere: the session is lost, the database away, nobody knows."""

_cancelling: set["asyncio.Future[None]"] = set()


class Step:
    """Streams one prepared request and settles its calls. ``run`` stores the step's end, or writes nothing."""

    def __init__(
        self,
        prepared: stages.Prepared,
        *,
        held: Held,
        control: Control,
        database: DatabaseThreads,
        woken_at: datetime | None = None,
    ) -> None:
        self.recorder = Recorder(held, prepared.frame, sending=prepared.sending)
        self._sending = prepared.sending
        self._control = control
        self._database: Runs = database
        self._woken_at = woken_at
        self._open: dict[str, Part] = {}
        self._cleaners: dict[str, Cleaner] = {}
        self._blank: dict[str, tuple[Kind, str]] = {}
        self._finished: Finished | None = None
        self._checkpointed: dict[str, int] = {}
        self._streaming: asyncio.Future[ProviderError | None] | None = None
        self._storing: asyncio.Future[None] | None = None
        self._calls: calls.Calls | None = None

    async def run(self) -> bool | retries.Retry:
        """Stream to the end and store it. True: go on draining; False: released; or the retry to wait for.

        Raises FenceLost or SessionGone when somebody else took over; then nothing was written.
        """
        self._streaming = asyncio.ensure_future(self._stream())
        await asyncio.wait({self._streaming})
        if self._storing is not None:
            self._storing.cancel()
        if self._streaming.cancelled():
            return await self._stopped()
        return await self._ended(self._streaming.result())

    def cancel(self) -> None:
        """Close the provider's stream, tell the calls to end. What ended by itself stays as it ended."""
        if self._calls is not None:
            self._calls.cancel()
        elif self._streaming is not None:
            self._streaming.cancel()

    async def _stream(self) -> ProviderError | None:
        """Read the provider to its end. Returns the error that ended it, None for a terminal marker."""
        try:
            async with aclosing(self._sending.provider.stream(self._sending.request, self)) as items:  # type: ignore[type-var]
                async for item in items:
                    await self._take(item)
        except ProviderError as error:
            return error
        except _NOT_FAULTS:
            raise
        except Exception as fault:  # noqa: BLE001 - left alone, it would come again until the session is parked
            return ProviderError(self._broke(fault))
        if self._finished is None:
            return ProviderError(
                AttemptError(
                    error_class="partial",
                    reason="cut",
                    message="The provider's stream ended without saying that it was complete.",
                )
            )
        return None

    def _broke(self, fault: Exception) -> AttemptError:
        """What is proved when reading the answer failed in this server."""
        faults.tell("step.broke", fault, self.recorder.held)
        if not self.recorder.is_dispatched:
            return AttemptError(error_class="not_sent", reason="configuration", message=faults.NOT_MADE)
        return AttemptError(error_class=self.recorder.lost_class, reason="cut", message=faults.NOT_READ)

    async def _take(self, item: Item) -> None:
        match item:
            case TextDelta(key=key, text=text):
                await self._write(key, "text", text)
            case ReasoningDelta(key=key, text=text):
                await self._write(key, "reasoning", text)
            case PartClosed(key=key, replay=replay):
                await self._complete(key, replay)
            case ResponseIdentified(response_id=response_id):
                await self._identify(response_id)
            case UsageNoted(usage=usage):
                self.recorder.usage = usage
            case Finished():
                self._finished = item
            case CallStarted() | CallDelta() | CallResult():
                await self._take_call(item)

    async def _take_call(self, item: CallStarted | CallDelta | CallResult) -> None:
        match item:
            case CallStarted():
                await self._start_call(item)
            case CallDelta(key=key, arguments=arguments):
                self._add_arguments(key, arguments)
            case CallResult():
                await self._take_result(item)

    async def _identify(self, response_id: str) -> None:
        """An id by which the provider can be asked later is durable before anything else is read."""
        self.recorder.response_id = response_id
        if isinstance(self._sending.provider, Askable):
            await self._database.run(self.recorder.identified, now=timezone.now())

    async def _write(self, key: str, kind: Kind, fragment: str) -> None:
        """Add a fragment to its part. A part opens with its first visible character, blanks included."""
        text = self._cleaners.setdefault(key, Cleaner()).feed(fragment)
        part = self._open.get(key)
        if part is None:
            text = self._blank.pop(key, (kind, ""))[1] + text
            if not text.strip():
                self._blank[key] = (kind, text)
                return
            part = await self._open_part(key, kind)
        if text:
            self._show(part, part.length, text)
            part.add(text)

    def _show(self, part: Part, offset: int, text: str) -> None:
        publish.delta(self.recorder.held.session_id, self.recorder.message_id, part.id, offset, text)

    async def _open_part(self, key: str, kind: Kind) -> Part:
        for earlier in self._open.values():
            if earlier.kind == "reasoning" and kind == "text":
                earlier.is_complete = True
        part = await self._database.run(self.recorder.open_part, kind=kind, now=timezone.now())
        self._open[key] = part
        return part

    async def _complete(self, key: str, replay: Mapping[str, Any]) -> None:
        part = self._open.get(key)
        kind, _ = self._blank.pop(key, ("text", ""))
        if part is None and replay and kind == "reasoning":
            # Reasoning whose words are withheld: what goes back with the answer is all there is of it.
            part = await self._open_part(key, kind)
        if part is None or part.is_complete:
            return
        part.is_complete = True
        part.replay = _kept(replay) or None
        if part.kind != "tool":
            del self._open[key]
        elif part.hosted:
            await self._database.run(self.recorder.hosted_called, part=part, now=timezone.now())

    async def _start_call(self, item: CallStarted) -> None:
        self._open[item.key] = await self._database.run(
            self.recorder.open_part,
            kind="tool",
            now=timezone.now(),
            call_id=clean(item.call_id),
            name=clean(item.name),
            hosted=item.hosted,
        )

    def _add_arguments(self, key: str, arguments: str) -> None:
        part = self._open.get(key)
        if part is not None and not part.is_complete:
            part.add(self._cleaners.setdefault(key, Cleaner()).feed(arguments))

    async def _take_result(self, item: CallResult) -> None:
        await self._complete(item.key, {})
        part = self._open.pop(item.key, None)
        if part is not None and part.hosted:
            await self._database.run(
                self.recorder.hosted_result,
                part=part,
                output=clean(item.output),
                is_error=item.is_error,
                replay=_kept(item.replay),
                now=timezone.now(),
            )

    async def _ended(self, error: ProviderError | None) -> bool | retries.Retry:
        now, shutting_down = timezone.now(), self._control.is_shutting_down
        if error is not None:
            return await self._database.run(
                self.recorder.fail,
                error=error.error,
                usage=error.usage,
                now=now,
                shutting_down=shutting_down,
            )
        assert self._finished is not None
        following = await self._database.run(
            self.recorder.complete, finished=self._finished, now=now, shutting_down=shutting_down
        )
        self._calls = calls.Calls(self.recorder, control=self._control, database=self._database)
        if self._control.stop_reason is not None:
            # It came while the end of the answer was stored, when there was no stream and no call to cancel.
            self._calls.cancel()
        return await self._calls.run(following)

    async def _stopped(self) -> bool:
        """The stream was cancelled by a Stop or a shutdown: close what is open.

        A provider that keeps the response goes on with it, unless it is told that nobody wants it.
        """
        now, reason = timezone.now(), self._control.stop_reason or "shutdown"
        if reason == "shutdown" and self.recorder.can_be_asked:
            return await self._database.run(self.recorder.leave_running, now=now)
        goes_on = await self._database.run(self.recorder.interrupt, reason=reason, now=now)
        if self.recorder.can_be_asked:
            self._cancel_there()
        return goes_on

    def _cancel_there(self) -> None:
        """Nothing waits for it: what was stopped is stopped here already."""
        provider, response_id = self._sending.provider, self.recorder.response_id
        if isinstance(provider, Askable) and response_id is not None:
            cancelling = asyncio.ensure_future(provider.cancel(response_id))
            _cancelling.add(cancelling)
            cancelling.add_done_callback(_cancelling.discard)

    # Phases

    async def dispatching(self) -> None:
        """Commit that the request leaves; then look once more whether we may still send it."""
        await self._control.certain()
        await self._database.run(self.recorder.dispatch, now=timezone.now())
        await self._control.verify()
        if self._woken_at is not None:
            waited = timezone.now() - self._woken_at
            figures.observe(figures.WAKE_TO_DISPATCH, waited.total_seconds())

    async def response_started(
        self, *, status: int, request_id: str | None, headers: Mapping[str, str]
    ) -> None:
        """Most answers begin right after their headers: one transaction holds both, if it does not last."""
        self.recorder.response_started(status=status, request_id=request_id, now=timezone.now())
        self._storing = asyncio.ensure_future(self._store_response())
        self._storing.add_done_callback(_look_at)

    async def _store_response(self) -> None:
        await asyncio.sleep(JOIN_SECONDS)
        await self._database.run(self.recorder.store_response, now=timezone.now())

    # Checkpoints

    def grown_parts(self) -> list[tuple[str, str]]:
        """The open parts that grew since the last call, with their text so far."""
        grown = []
        for part in self.recorder.parts:
            if part.kind != "tool" and not part.is_ended and part.length > self._checkpointed.get(part.id, 0):
                self._checkpointed[part.id] = part.length
                grown.append((part.id, part.text()))
        return grown

    async def write_progress(self) -> None:
        if self._calls is not None:
            await self._calls.write_progress()
