"""One step: one physical request, streamed into durable parts and live deltas."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Literal, Protocol

from django.utils import timezone

from schema.attempts import AttemptError
from schema.text import Cleaner
from sessions_app.execution.database import DatabaseThreads
from sessions_app.execution.recorder import Kind, Part, Recorder
from sessions_app.execution.stages import Prepared
from sessions_app.live import publish
from sessions_app.providers.port import (
    CallDelta,
    CallStarted,
    Finished,
    Item,
    PartClosed,
    ProviderError,
    ReasoningDelta,
    ResponseIdentified,
    TextDelta,
)

StopReason = Literal["user", "shutdown"]


class Control(Protocol):
    """What a step asks of the drain around it."""

    @property
    def stop_reason(self) -> StopReason | None: ...

    @property
    def is_shutting_down(self) -> bool: ...

    async def certain(self) -> None:
        """Wait until the worker has no doubt about its ownership."""

    async def verify(self) -> None:
        """Raise FenceLost when the session is not ours any more."""


class Step:
    """Streams one prepared request. ``run`` ends with the step's end stored, or writes nothing more."""

    def __init__(self, prepared: Prepared, *, control: Control, database: DatabaseThreads) -> None:
        self.recorder = Recorder(prepared)
        self._prepared = prepared
        self._control = control
        self._database = database
        self._open: dict[str, Part] = {}
        self._cleaners: dict[str, Cleaner] = {}
        self._blank: dict[str, str] = {}
        self._finished: Finished | None = None
        self._called_tool = False
        self._checkpointed: dict[str, int] = {}
        self._streaming: asyncio.Future[ProviderError | None] | None = None

    async def run(self) -> bool:
        """Stream to the end and store it. True: go on draining; False: released.

        Raises FenceLost or SessionGone when somebody else took over; then nothing was written.
        """
        self._streaming = asyncio.ensure_future(self._stream())
        await asyncio.wait({self._streaming})
        if self._streaming.cancelled():
            return await self._stopped()
        return await self._ended(self._streaming.result())

    def cancel(self) -> None:
        """Close the provider's stream. Once it has ended by itself, storing its end goes on untouched."""
        if self._streaming is not None:
            self._streaming.cancel()

    async def _stream(self) -> ProviderError | None:
        """Read the provider to its end. Returns the error that ended it, None for a terminal marker."""
        try:
            async with aclosing(self._prepared.provider.stream(self._prepared.request, self)) as items:  # type: ignore[type-var]
                async for item in items:
                    await self._take(item)
        except ProviderError as error:
            return error
        if self._finished is None:
            return ProviderError(
                AttemptError(
                    error_class="partial",
                    reason="cut",
                    message="The provider's stream ended without saying that it was complete.",
                )
            )
        return None

    async def _take(self, item: Item) -> None:
        match item:
            case TextDelta(key=key, text=text):
                await self._write(key, "text", text)
            case ReasoningDelta(key=key, text=text):
                await self._write(key, "reasoning", text)
            case PartClosed(key=key, replay=replay):
                self._complete(key, replay)
            case ResponseIdentified(response_id=response_id):
                self.recorder.response_id = response_id
            case CallStarted() | CallDelta():
                self._called_tool = True
            case Finished():
                self._finished = item

    async def _write(self, key: str, kind: Kind, fragment: str) -> None:
        """Add a fragment to its part. A part opens with its first visible character, blanks included."""
        text = self._cleaners.setdefault(key, Cleaner()).feed(fragment)
        part = self._open.get(key)
        if part is None:
            text = self._blank.pop(key, "") + text
            if not text.strip():
                self._blank[key] = text
                return
            part = await self._open_part(key, kind)
        if text:
            publish.delta(
                self.recorder.held.session_id, self.recorder.message_id, part.id, part.length, text
            )
            part.add(text)

    async def _open_part(self, key: str, kind: Kind) -> Part:
        for earlier in self._open.values():
            if earlier.kind == "reasoning" and kind == "text":
                earlier.is_complete = True
        part = await self._database.run(self.recorder.open_part, kind=kind, now=timezone.now())
        self._open[key] = part
        return part

    def _complete(self, key: str, replay: Mapping[str, Any]) -> None:
        part = self._open.pop(key, None)
        if part is not None:
            part.is_complete = True
            part.replay = dict(replay) or None

    async def _ended(self, error: ProviderError | None) -> bool:
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
        if self._called_tool:
            return await self._database.run(
                self.recorder.refuse_tools,
                usage=self._finished.usage,
                now=now,
                shutting_down=shutting_down,
            )
        return await self._database.run(
            self.recorder.complete, finished=self._finished, now=now, shutting_down=shutting_down
        )

    async def _stopped(self) -> bool:
        """The stream was cancelled by a Stop or a shutdown: close what is open."""
        reason = self._control.stop_reason or "shutdown"
        return await self._database.run(self.recorder.interrupt, reason=reason, now=timezone.now())

    # Phases

    async def dispatching(self) -> None:
        """Commit that the request leaves; then look once more whether we may still send it."""
        await self._control.certain()
        await self._database.run(self.recorder.dispatch, now=timezone.now())
        await self._control.verify()

    async def response_started(
        self, *, status: int, request_id: str | None, headers: Mapping[str, str]
    ) -> None:
        await self._database.run(
            self.recorder.response_started, status=status, request_id=request_id, now=timezone.now()
        )

    # Checkpoints

    def grown_parts(self) -> list[tuple[str, str]]:
        """The open parts that grew since the last call, with their text so far."""
        grown = []
        for part in self.recorder.parts:
            if not part.is_ended and part.length > self._checkpointed.get(part.id, 0):
                self._checkpointed[part.id] = part.length
                grown.append((part.id, part.text()))
        return grown

