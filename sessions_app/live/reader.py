"""The one reader behind WebSocket and server-sent events.

    async with aclosing(reader.frames()) as frames:
        async for frame in frames: ...

A reader that joins at any moment is sent what is stored, then everything that follows, once. It ends by
itself when the session is deleted or when its frames are not taken; ``ended`` says which.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final, Literal

from django.db import DatabaseError, InterfaceError

from schema.status import Status
from sessions_app.live import entries, frames, reads, switchboard
from sessions_app.live.bounded_log import BoundedLog
from sessions_app.live.follower import Follower, Text
from sessions_app.live.frames import Frame
from sessions_app.live.packets import Item

logger = logging.getLogger(__name__)

End = Literal["gone", "slow", "signed_out", "changed"]

MOST_FRAMES: Final = 2000
MOST_CHARACTERS: Final = 4 << 20
"""What may wait for a reader that is slow; more ends it, and it joins again from where it was."""
STALL_SECONDS: Final = 30.0
PING_SECONDS: Final = 15.0
REORDER_SECONDS: Final = 0.03
"""A missing event may only be late: this long it is waited for before it is loaded."""
LATE_SECONDS: Final = 0.2
"""The same for an event that a look has seen and that is on its way here."""
RETRY_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 1.5
"""An open part that did not grow for so long is looked at: its fragments may be lost."""

_blind: Final = BoundedLog(logger, "live.reader.blind")


class Reader:
    """Follows one session on the running loop. Made, iterated and closed on it."""

    def __init__(self, session_id: str, *, after: int) -> None:
        self.session_id = session_id
        self.ended: End | None = None
        self._board = switchboard.here()
        self._loop = asyncio.get_running_loop()
        self._follower = Follower(after=after)
        self._is_syncing = True
        self._loading: asyncio.Task[None] | None = None
        self._grown: dict[str, tuple[int, float]] = {}
        self._status: Status | None = None
        self._held_status: Status | None = None
        self._outbox: deque[Frame] = deque()
        self._characters = 0
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()
        self._taken_at = self._sent_at = self._loop.time()

    # For whoever sends

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Every frame in order, until the reader ends. Closing it detaches the reader."""
        try:
            await self._board.attach(self)
            self._load_after(0)
            while True:
                while self._outbox:
                    frame = self._outbox.popleft()
                    self._characters -= len(frame.json)
                    self._taken_at = self._loop.time()
                    self._taken.set()
                    yield frame
                if self.ended is not None:
                    return
                self._changed.clear()
                self._taken_at = self._loop.time()
                await self._changed.wait()
        finally:
            self._board.detach(self)
            if self._loading is not None:
                self._loading.cancel()

    def sync(self, *, after: int) -> None:
        """Start over from ``after``: missing events, open parts, ready. Of several syncs at once the last holds."""
        self._follower = Follower(after=after)
        self._is_syncing = True
        self._load_after(0)

    # For the switchboard

    def take(self, items: list[Item]) -> None:
        """What the layer brings. While a load waits for room it is let go: the load and the looks bring it."""
        if self._is_full():
            if self._loading is None:
                self._end("slow")
            return
        self._follower.take(items)
        self._flush()

    def looked(self, *, head_seq: int) -> None:
        self._follower.head = max(self._follower.head, head_seq)
        if self._follower.is_behind:
            self._load_after(LATE_SECONDS)

    def take_text(self, text: Text) -> None:
        self._follower.stored_text(text)
        self._flush()

    def take_status(self, status: Status) -> None:
        """Sent once the events it speaks of were sent, if it says something new."""
        self._held_status = status
        self._flush()

    def waits_for(self, *, at: float, all_silent: bool) -> dict[str, int]:
        """Parts whose stored text is wanted, with the length that was sent."""
        lengths = self._follower.gaps()
        if all_silent:
            lengths.update(self._silent(at))
        return lengths

    def gone(self) -> None:
        self._end("gone")

    def leave(self, why: entries.Why) -> None:
        """What let the reader in does not hold any more: nothing of what waits is sent."""
        self._outbox.clear()
        self._end(why)

    def tick(self, *, at: float) -> None:
        if self._outbox and at - self._taken_at > STALL_SECONDS:
            self._end("slow")
        elif at - self._sent_at > PING_SECONDS:
            self._put(frames.PING)

    def _silent(self, at: float) -> dict[str, int]:
        """Open parts that did not grow lately."""
        lengths = self._follower.open_lengths()
        self._grown = {
            part_id: known if (known := self._grown.get(part_id)) and known[0] == length else (length, at)
            for part_id, length in lengths.items()
        }
        return {
            part_id: length
            for part_id, (length, since) in self._grown.items()
            if at - since >= SILENT_SECONDS
        }

    # Sending

    def _flush(self) -> None:
        """Hand out what the follower has; ask for what it lacks."""
        for frame in self._follower.take_frames():
            self._put(frame)
        self._flush_status()
        if self._follower.is_behind:
            self._load_after(REORDER_SECONDS)
        if self._follower.gaps():
            self._board.want_texts(self.session_id)

    def _flush_status(self) -> None:
        status = self._held_status
        if status is None or status.head_seq > self._follower.seq or self._is_syncing:
            return
        self._held_status = None
        if _says_the_same(status, self._status):
            return
        self._status = status
        self._put(frames.status(status))

    def _put(self, frame: Frame) -> None:
        if self.ended is None:
            self._outbox.append(frame)
            self._characters += len(frame.json)
            self._sent_at = self._loop.time()
            self._changed.set()

    def _is_full(self) -> bool:
        return len(self._outbox) > MOST_FRAMES or self._characters > MOST_CHARACTERS

    def _end(self, why: End) -> None:
        if self.ended is None:
            self.ended = why
            if why == "slow":
                logger.info("live.reader.slow", extra={"session": self.session_id})
                self._outbox.clear()
            self._board.detach(self)
            self._changed.set()
            self._taken.set()

    # Catching up

    def _load_after(self, seconds: float) -> None:
        if self._loading is None and self.ended is None:
            self._loading = self._loop.create_task(self._load(seconds))

    async def _load(self, seconds: float) -> None:
        """Load until nothing is missing; a database that is away is asked again."""
        try:
            while self.ended is None:
                if not self._is_syncing:
                    await asyncio.sleep(seconds)
                if not self._is_syncing and not self._follower.is_behind:
                    return
                await self._load_all(self._follower, is_sync=self._is_syncing)
                seconds = REORDER_SECONDS
        except Exception:
            logger.exception("live.reader.failed", extra={"session": self.session_id})
            self._end("slow")
        finally:
            self._loading = None

    async def _load_all(self, follower: Follower, *, is_sync: bool) -> None:
        """Load every page there is, unless a sync starts over meanwhile."""
        first = follower.seq
        while self.ended is None:
            follower.start_load()
            loaded = await self._read(follower.seq, with_status=is_sync)
            if self._follower is not follower or loaded is None:
                return
            if is_sync and follower.seq == first > loaded.head_seq:
                # The reader knows of events that were never stored here: it starts from what is.
                follower.seq = follower.head = loaded.head_seq
            follower.loaded(events=loaded.events, texts=loaded.texts, is_last=loaded.is_last)
            if loaded.is_last:
                self._finish_load(loaded, is_sync=is_sync)
                return
            self._flush()
            await self._room()

    async def _read(self, after: int, *, with_status: bool) -> reads.Loaded | None:
        """One page. None when there is none: the session is gone, or the database is away for now."""
        try:
            loaded = await reads.run(reads.load, self.session_id, after=after, with_status=with_status)
        except (DatabaseError, InterfaceError) as error:
            _blind.add(type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)
            return None
        if loaded is None:
            self._end("gone")
        return loaded

    def _finish_load(self, loaded: reads.Loaded, *, is_sync: bool) -> None:
        if is_sync:
            self._is_syncing = False
            self._status = None
            self._held_status = loaded.status
        self._flush()
        if is_sync:
            self._put(frames.ready(head_seq=self._follower.seq))

    async def _room(self) -> None:
        """A long log is sent as fast as it is read, page by page."""
        while self._is_full() and self.ended is None:
            self._taken.clear()
            await self._taken.wait()


def _says_the_same(status: Status, sent: Status | None) -> bool:
    """The seq alone is no news: the events told it."""
    return sent is not None and status.model_copy(update={"head_seq": sent.head_seq}) == sent
