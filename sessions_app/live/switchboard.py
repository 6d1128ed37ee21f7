"""One loop's readers together: one channel on the layer, and one look at the database for all of them.

The layer makes readers fast; the looks make them right. Busy sessions are looked at about once a second,
idle ones every other time, in a few statements however many readers there are.
"""

import asyncio
import logging
import time
from collections.abc import Set
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from django.db import DatabaseError, InterfaceError

from schema.status import Status
from sessions_app import figures
from sessions_app.live import entries, groups, nudge, reads
from sessions_app.live.bounded_log import BoundedLog
from sessions_app.live.follower import Text
from sessions_app.live.packets import Item

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
STATUS_SECONDS: Final = 0.1
"""Statuses are recomputed at most this often."""
CHECKPOINT_SECONDS: Final = 0.06
"""How long a nudged owner has to save a checkpoint before it is looked for."""
LAST_NUDGE_SECONDS: Final = 1.0
JOIN_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 1.0
TURN: Final = 100
"""Packets that are handled before the loop turns."""

_deaf: Final = BoundedLog(logger, "live.readers.deaf")
_blind: Final = BoundedLog(logger, "live.readers.blind")


class Listener(Protocol):
    """A reader, as the switchboard sees it. Everything is called on the loop and must not block."""

    session_id: str

    def take(self, items: list[Item]) -> None: ...
    def looked(self, *, head_seq: int) -> None: ...
    def take_status(self, status: Status) -> None: ...
    def take_text(self, text: Text) -> None: ...
    def waits_for(self, *, at: float, all_silent: bool) -> dict[str, int]: ...
    def gone(self) -> None: ...
    def tick(self, *, at: float) -> None: ...


class Switchboard:
    """Made by ``here`` for the running loop. Works while it has readers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._readers: dict[str, set[Listener]] = {}
        self._seen: dict[str, reads.Seen] = {}
        self._dirty: set[str] = set()
        self._healing: dict[str, _Healing] = {}
        self._joined: set[str] = set()
        self._channel: str | None = None
        self._is_listening = asyncio.Event()
        self._wake = asyncio.Event()
        self._next_look = 0.0
        self._next_tick = 0.0
        self._ticks = 0
        self._tasks: list[asyncio.Task[None]] = []

    # Readers

    async def attach(self, reader: Listener) -> None:
        """Let the reader take what comes from now on. Waits until the layer was joined, but not for long."""
        self._readers.setdefault(reader.session_id, set()).add(reader)
        if not self._tasks:
            self._next_tick = self._loop.time() + LOOK_SECONDS
            self._next_look = self._next_tick
            self._tasks = [self._loop.create_task(self._listen()), self._loop.create_task(self._look_on())]
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await self._is_listening.wait()
                await self._join(reader.session_id)
        except TimeoutError:
            _deaf.add("the layer does not answer")

    def detach(self, reader: Listener) -> None:
        """The reader takes nothing more. A repeat changes nothing."""
        readers = self._readers.get(reader.session_id)
        if readers is None:
            return
        readers.discard(reader)
        if not readers:
            del self._readers[reader.session_id]
            for kept in (self._seen, self._healing):
                kept.pop(reader.session_id, None)
            self._dirty.discard(reader.session_id)
            self._look_at(self._loop.time())

    def want_status(self, session_id: str) -> None:
        """The session's status may have changed."""
        if session_id not in self._dirty:
            self._dirty.add(session_id)
            self._look_at(self._loop.time() + STATUS_SECONDS)

    def want_texts(self, session_id: str) -> None:
        """A reader of the session has a gap: have its owner save the text, then look for it."""
        if session_id not in self._healing:
            self._healing[session_id] = _Healing(due=self._loop.time() + CHECKPOINT_SECONDS)
            self._nudge(session_id)
            self._look_at(self._healing[session_id].due)

    def _nudge(self, session_id: str) -> None:
        seen = self._seen.get(session_id)
        if seen is not None and seen.owner_id is not None:
            nudge.checkpoint(worker_id=seen.owner_id, session_id=session_id)

    # The layer

    async def _listen(self) -> None:
        """Take packets until cancelled; join again whatever happened to the layer."""
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; the looks go on)
                _deaf.add(f"{type(error).__name__}: {error}"[:200])
            finally:
                self._channel = None
                self._is_listening.clear()
                self._joined.clear()
            await asyncio.sleep(RETRY_SECONDS)

    async def _listen_once(self) -> None:
        layer = groups.layer()
        self._channel = channel = await layer.new_channel()
        self._is_listening.set()
        await layer.group_add(groups.of_entries(), channel)
        try:
            for session_id in list(self._readers):
                await self._join(session_id)
            await self._take_from(channel)
        finally:
            await self._leave_entries(channel)

    async def _take_from(self, channel: str) -> None:
        layer, handled = groups.layer(), 0
        while True:
            self._deliver(await layer.receive(channel))
            handled += 1
            if handled % TURN == 0:
                await asyncio.sleep(0)

    async def _leave_entries(self, channel: str) -> None:
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await groups.layer().group_discard(groups.of_entries(), channel)
        except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; it has lost us then)
            _deaf.add(f"{type(error).__name__}: {error}"[:200])

    async def _join(self, session_id: str) -> None:
        channel = self._channel
        if channel is None or session_id in self._joined:
            return
        try:
            await groups.layer().group_add(groups.of_session(session_id), channel)
            self._joined.add(session_id)
        except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; the next look tries again)
            _deaf.add(f"{type(error).__name__}: {error}"[:200])

    async def _leave_unread(self) -> None:
        """Leave the groups of sessions that nobody here reads any more; join those that failed before."""
        channel = self._channel
        if channel is None:
            return
        for session_id in self._joined - self._readers.keys():
            self._joined.discard(session_id)
            try:
                await groups.layer().group_discard(groups.of_session(session_id), channel)
            except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; a message too many is ignored)
                _deaf.add(f"{type(error).__name__}: {error}"[:200])
        for session_id in self._readers.keys() - self._joined:
            await self._join(session_id)

    def _deliver(self, packet: dict[str, Any]) -> None:
        if packet.get("type") == entries.KIND:
            entries.hear(packet)
            return
        session_id, items = packet.get("session"), packet.get("items")
        if not isinstance(session_id, str) or not isinstance(items, list):
            return
        readers = self._readers.get(session_id)
        if not readers:
            return
        for reader in list(readers):
            reader.take(items)
        if isinstance(since := packet.get("since"), float):
            figures.observe(figures.DELTA_DELAY, time.time() - since)
        if any(isinstance(item, list) and item[:1] != ["delta"] for item in items):
            self.want_status(session_id)

    # The looks

    def _look_at(self, at: float) -> None:
        if at < self._next_look:
            self._next_look = at
            self._wake.set()

    async def _look_on(self) -> None:
        """Look until nobody reads any more, then leave the layer."""
        try:
            while self._readers:
                await self._until_next_look()
                await self._leave_unread()
                await self._look_or_retry()
        finally:
            listening, _ = self._tasks
            listening.cancel()
            self._tasks = []
            self._is_listening.clear()

    async def _look_or_retry(self) -> None:
        """A look that failed is made again; the readers stay."""
        try:
            await self._look()
        except (DatabaseError, InterfaceError) as error:
            _blind.add(type(error).__name__)
        except Exception:
            logger.exception("live.look.failed")
        else:
            return
        self._next_look = self._next_tick = self._loop.time() + RETRY_SECONDS

    async def _until_next_look(self) -> None:
        while (left := self._next_look - self._loop.time()) > 0 and self._readers:
            self._wake.clear()
            try:
                async with asyncio.timeout(left):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def _look(self) -> None:
        at = self._loop.time()
        is_tick = at >= self._next_tick
        if is_tick:
            self._tick(at)
        question = self._question(at, is_tick=is_tick)
        self._next_look = self._next_tick
        if question.session_ids:
            self._tell(question, await reads.run(reads.look, question))
        self._schedule(at)

    def _tick(self, at: float) -> None:
        self._ticks += 1
        self._next_tick = at + LOOK_SECONDS
        for readers in list(self._readers.values()):
            for reader in list(readers):
                reader.tick(at=at)

    def _question(self, at: float, *, is_tick: bool) -> reads.Question:
        healing = {session_id for session_id, each in self._healing.items() if each.due <= at}
        dirty, self._dirty = frozenset(self._dirty), set()
        wanted = dirty | healing
        if is_tick:
            wanted |= self._due_sessions()
        wanted &= self._readers.keys()
        return reads.Question(
            session_ids=frozenset(wanted),
            seen=self._seen,
            dirty=dirty,
            lengths=self._lengths(wanted, at, all_silent=is_tick),
        )

    def _lengths(self, session_ids: Set[str], at: float, *, all_silent: bool) -> dict[str, int]:
        """The texts that readers of these sessions wait for; of two readers the shorter counts."""
        lengths: dict[str, int] = {}
        for session_id in session_ids:
            for reader in self._readers[session_id]:
                for part_id, length in reader.waits_for(at=at, all_silent=all_silent).items():
                    lengths[part_id] = min(length, lengths.get(part_id, length))
        return lengths

    def _due_sessions(self) -> set[str]:
        """Every session that somebody owns; the others every other time."""
        if self._ticks % 2 == 0:
            return set(self._readers)
        return {
            session_id
            for session_id in self._readers
            if (seen := self._seen.get(session_id)) is None or seen.owner_id is not None
        }

    def _tell(self, question: reads.Question, answer: reads.Answer) -> None:
        for session_id in question.session_ids & self._readers.keys():
            seen = answer.seen.get(session_id)
            for reader in list(self._readers[session_id]):
                if seen is None:
                    reader.gone()
                    continue
                for text in answer.texts.get(session_id, ()):
                    reader.take_text(text)
                if session_id in answer.statuses:
                    reader.take_status(answer.statuses[session_id])
                reader.looked(head_seq=seen.head_seq)
            if seen is not None and session_id in self._readers:
                self._seen[session_id] = seen

    def _schedule(self, at: float) -> None:
        """What is still missing is asked for again, ever more slowly."""
        for session_id, healing in list(self._healing.items()):
            if healing.due > at:
                self._look_at(healing.due)
            elif not self._has_gap(session_id, at):
                del self._healing[session_id]
            else:
                healing.pause = min(2 * healing.pause, LAST_NUDGE_SECONDS)
                healing.due = self._loop.time() + healing.pause
                self._nudge(session_id)
                self._look_at(healing.due)
        if self._dirty:
            self._look_at(self._loop.time() + STATUS_SECONDS)

    def _has_gap(self, session_id: str, at: float) -> bool:
        readers = self._readers.get(session_id, ())
        return any(reader.waits_for(at=at, all_silent=False) for reader in readers)


class _Healing:
    """A session some reader of which has a gap."""

    def __init__(self, *, due: float) -> None:
        self.due = due
        self.pause = CHECKPOINT_SECONDS


_boards: WeakKeyDictionary[asyncio.AbstractEventLoop, Switchboard] = WeakKeyDictionary()


def here() -> Switchboard:
    """The running loop's switchboard."""
    loop = asyncio.get_running_loop()
    board = _boards.get(loop)
    if board is None:
        board = _boards[loop] = Switchboard()
    return board
