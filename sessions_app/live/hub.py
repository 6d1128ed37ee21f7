"""The middle of the embedded layer: one process listens on the socket and routes between all others.

Whoever holds the lock beside the socket is the hub. The kernel gives a dead hub's lock up, so a socket
that a killed process left behind is replaced, and that of a living one is never taken.
"""

import asyncio
import fcntl
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from sessions_app.live import wire
from sessions_app.live.bounded_log import BoundedLog

logger = logging.getLogger(__name__)

MOST_KEYS: Final = 100_000
"""Keys one client may join; readers of that many sessions do not fit into one process."""

Deliver = Callable[[str, bytes], None]


class HubTaken(Exception):
    """Another living process is the hub."""


class Hub:
    """Listens until ``close``. Made by ``open_hub`` on the loop it then lives on."""

    def __init__(
        self, *, path: Path, lock: IO[bytes], deliver: Deliver, max_buffer: int, dropped: BoundedLog
    ) -> None:
        self._path = path
        self._lock = lock
        self._deliver = deliver
        self._max_buffer = max_buffer
        self._server: asyncio.AbstractServer | None = None
        self._clients: set[_Client] = set()
        self._joined: dict[str, set[_Client]] = {}
        self._dropped = dropped

    async def serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Client(self), sock=listener)

    def publish(self, key: str, payload: bytes) -> None:
        """Deliver here and to every client that joined; one that does not read loses, nobody waits."""
        self._deliver(key, payload)
        clients = self._joined.get(key)
        if clients:
            frame = wire.pack(wire.PUBLISH, key, payload)
            for client in clients:
                if not client.forward(frame, self._max_buffer):
                    self._dropped.add("a client does not read")

    def join(self, key: str) -> None:
        """Deliveries here need no joining; the name is that of every link."""

    def leave(self, key: str) -> None:
        """See ``join``."""

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._path.unlink(missing_ok=True)
        for client in list(self._clients):
            client.abort()
        self._lock.close()
        # The connections end in the loop's next turn.
        await asyncio.sleep(0)

    # Told by clients

    def connected(self, client: "_Client") -> None:
        self._clients.add(client)

    def disconnected(self, client: "_Client") -> None:
        self._clients.discard(client)
        for key in client.keys:
            self._forget(client, key)

    def received(self, client: "_Client", frame: wire.Frame) -> None:
        """Serve one frame. Raises wire.MalformedFrame when a client joins more than it may."""
        if frame.op == wire.PUBLISH:
            self.publish(frame.key, frame.payload)
        elif frame.op == wire.LEAVE:
            client.keys.discard(frame.key)
            self._forget(client, frame.key)
        else:
            if len(client.keys) >= MOST_KEYS:
                raise wire.MalformedFrame("too many keys")
            client.keys.add(frame.key)
            self._joined.setdefault(frame.key, set()).add(client)

    def _forget(self, client: "_Client", key: str) -> None:
        joined = self._joined.get(key)
        if joined is not None:
            joined.discard(client)
            if not joined:
                del self._joined[key]


class _Client(asyncio.Protocol):
    """The hub's end of one connection."""

    def __init__(self, hub: Hub) -> None:
        self.keys: set[str] = set()
        self._hub = hub
        self._reader = wire.FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._hub.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._hub.disconnected(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._hub.received(self, frame)
        except wire.MalformedFrame as malformed:
            logger.warning("live.layer.malformed", extra={"reason": str(malformed)})
            self.abort()

    def forward(self, frame: bytes, max_buffer: int) -> bool:
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() > max_buffer:
            return False
        transport.write(frame)
        return True

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def open_hub(path: Path, *, deliver: Deliver, max_buffer: int, dropped: BoundedLog) -> Hub:
    """Become the hub and listen.

    Raises HubTaken while another process is, OSError when the directory cannot be used.
    """
    lock = path.with_name(path.name + ".lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        listener = _listener(path)
    except BlockingIOError:
        lock.close()
        raise HubTaken from None
    except OSError:
        lock.close()
        raise
    hub = Hub(path=path, lock=lock, deliver=deliver, max_buffer=max_buffer, dropped=dropped)
    await hub.serve(listener)
    return hub


def _listener(path: Path) -> socket.socket:
    """A listening socket that appears under its name ready and private, in the place of a stale one."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(draft))
        draft.chmod(0o600)
        listener.listen(256)
        listener.setblocking(False)
        os.replace(draft, path)
    except OSError:
        listener.close()
        raise
    return listener
