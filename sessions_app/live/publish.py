"""Telling readers: one door, callable from any thread, which never blocks and never raises.

What is told may be lost, and nothing depends on it: the log and the checkpoints are the truth, and every
reader looks at them by itself. Per session the order is kept: what is told first is sent first.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sessions_app.live import groups, packets
from sessions_app.live.bounded_log import BoundedLog
from sessions_app.live.packets import Item, Packet
from sessions_app.log import StoredEvent

logger = logging.getLogger(__name__)

COALESCE_SECONDS: Final = 0.03
"""Deltas of a session are sent at most this often, so that cost follows time, not tokens."""
MOST_WAITING: Final = 50_000
"""Items that may wait for the layer, all sessions together; a layer that stalls longer loses some."""
BATCH_SECONDS: Final = 5.0
"""How long one round of sending may take before what is left of it is dropped."""
PAUSE_SECONDS: Final = 1.0
"""After a failure nothing is tried for this long: a layer that is away must cost nothing."""

_lost: Final = BoundedLog(logger, "live.publish.lost")


def events(session_id: str, stored: Sequence[StoredEvent]) -> None:
    """Tell the session's readers of events that were committed; deltas told before are sent before."""
    _tell(session_id, (packets.event_item(event) for event in stored), at_once=True)


def delta(session_id: str, message: str, part: str, offset: int, text: str) -> None:
    """Tell a fragment of an open part; ``offset`` is the number of code points of the part before it."""
    _tell(session_id, [["delta", message, part, offset, text]], at_once=False)


def status(session_id: str) -> None:
    """Tell that something changed which has no event: an owner, a deletion."""
    _tell(session_id, [["status"]], at_once=True)


def post(group: str, packet: Packet) -> None:
    """Send any packet to a group, in no order with the rest."""
    try:
        _publisher().post(group, packet)
    except Exception:
        logger.exception("live.publish.failed")


def use_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Send on this loop from now on, as long as it is open; None: on a thread of our own again."""
    global _here
    with _making:
        _here = None if loop is None else _Publisher(loop)


async def finish() -> None:
    """Send what waits now. Called on the publisher's loop before it ends."""
    here = _here
    if here is not None and here.loop is asyncio.get_running_loop():
        await here.drain()


def _tell(session_id: str, items: Iterable[Item], *, at_once: bool) -> None:
    try:
        _publisher().tell(session_id, list(items), at_once=at_once)
    except Exception:
        logger.exception("live.publish.failed", extra={"session": session_id})


@dataclass(eq=False)
class _Waiting:
    """What one session's readers are still to be told."""

    items: list[Item] = field(default_factory=list)
    since: float | None = None
    """When the oldest delta among them was told, by the wall clock."""
    free_at: float = 0.0
    """Deltas alone wait until this time of the loop's clock."""


class _Publisher:
    """Collects from any thread, sends on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._lock = threading.Lock()
        self._told: list[tuple[str, list[Item], float | None]] = []
        self._posts: list[tuple[str, Packet]] = []
        self._is_called = False
        self._count = 0
        # From here on: on the loop only.
        self._waiting: dict[str, _Waiting] = {}
        self._urgent: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._paused_until = 0.0

    # Any thread

    def tell(self, session_id: str, items: list[Item], *, at_once: bool) -> None:
        with self._lock:
            if self._count >= MOST_WAITING:
                _lost.add("too much waits", count=len(items))
                return
            self._count += len(items)
            self._told.append((session_id, items, None if at_once else time.time()))
        self._call()

    def post(self, group: str, packet: Packet) -> None:
        with self._lock:
            if self._count >= MOST_WAITING:
                _lost.add("too much waits")
                return
            self._count += 1
            self._posts.append((group, packet))
        self._call()

    def _call(self) -> None:
        """Wake the loop once, however much is told before it turns."""
        with self._lock:
            if self._is_called:
                return
            self._is_called = True
        if _running_loop() is self.loop:
            self.loop.call_soon(self._collect)
        else:
            self.loop.call_soon_threadsafe(self._collect)

    # The loop

    def _collect(self) -> None:
        with self._lock:
            told, self._told = self._told, []
            self._is_called = False
        now = self.loop.time()
        for session_id, items, since in told:
            waiting = self._waiting.setdefault(session_id, _Waiting())
            waiting.items.extend(items)
            waiting.since = waiting.since or since
            if since is None or waiting.free_at <= now:
                self._urgent[session_id] = None
        self._send_soon()
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        """Wake up for the deltas that wait, and forget the sessions that have been quiet for long enough."""
        if self._timer is None and self._waiting:
            self._timer = self.loop.call_at(now + COALESCE_SECONDS / 2, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self.loop.time()
        for session_id, waiting in list(self._waiting.items()):
            if waiting.free_at > now or session_id in self._urgent:
                continue
            if waiting.items:
                self._urgent[session_id] = None
            else:
                del self._waiting[session_id]
        self._send_soon()
        self._set_timer(now)

    def _send_soon(self) -> None:
        if (self._urgent or self._posts) and self._sending is None:
            self._sending = self.loop.create_task(self._send())
            self._sending.add_done_callback(self._sent)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        self._sending = None
        if not task.cancelled() and not self.loop.is_closed():
            self._send_soon()

    async def drain(self) -> None:
        """Send everything that was told so far."""
        self._collect()
        self._urgent.update(dict.fromkeys(self._waiting))
        self._send_soon()
        while self._sending is not None:
            await asyncio.wait({self._sending})

    async def _send(self) -> None:
        """Send what is due; a failure costs this round and is logged, never raised."""
        while self._urgent or self._posts:
            outgoing = self._take()
            if self.loop.time() < self._paused_until:
                _lost.add("the layer is away", count=len(outgoing))
                continue
            left = len(outgoing)
            try:
                layer = groups.layer()
                async with asyncio.timeout(BATCH_SECONDS):
                    for group, packet in outgoing:
                        await layer.group_send(group, packet)
                        left -= 1
            except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; none may reach a drain)
                self._paused_until = self.loop.time() + PAUSE_SECONDS
                _lost.add(f"{type(error).__name__}: {error}"[:200], count=left)

    def _take(self) -> list[tuple[str, Packet]]:
        """All that is due, as packets; their sessions' deltas then rest a little."""
        with self._lock:
            outgoing, self._posts = self._posts, []
            taken = len(outgoing)
        free_at = self.loop.time() + COALESCE_SECONDS
        for session_id in self._urgent:
            waiting = self._waiting[session_id]
            items, waiting.items, waiting.free_at = waiting.items, [], free_at
            since, waiting.since = waiting.since, None
            outgoing += _packed(session_id, items, since=since)
            taken += len(items)
        self._urgent.clear()
        with self._lock:
            self._count -= taken
        return outgoing


def _packed(session_id: str, items: list[Item], *, since: float | None) -> list[tuple[str, Packet]]:
    """What one session's items become; items that cannot be packed are lost, and no other session's."""
    try:
        group = groups.of_session(session_id)
        return [(group, packet) for packet in packets.packed(session_id, items, since=since)]
    except Exception:
        logger.exception("live.publish.failed", extra={"session": session_id})
        return []


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# The publisher of this process

_making = threading.Lock()
_here: _Publisher | None = None


def _publisher() -> _Publisher:
    """This process's publisher; made anew when the loop it was given has closed."""
    here = _here
    return here if here is not None and not here.loop.is_closed() else _make()


def _make() -> _Publisher:
    global _here
    with _making:
        if _here is None or _here.loop.is_closed():
            loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(loop,), name="live-publish", daemon=True).start()
            _here = _Publisher(loop)
        return _here


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _forget() -> None:
    """A fork has none of its parent's threads, and perhaps a lock that one of them held."""
    global _here, _making
    _here, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
