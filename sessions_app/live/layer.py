"""The embedded channel layer: one unix socket, crossing processes in both directions without a server.

The web process is the hub; every other process, and every other loop of the web process, is a client that
connects when it first needs to and again whenever the connection broke. Messages may be lost: when the hub
is away, or when a receiver or a buffer is full. Each loss is counted. Nothing here waits for a peer.
"""

import asyncio
import logging
import uuid
from collections import deque
from pathlib import Path
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from channels.layers import BaseChannelLayer
from django.conf import settings

from sessions_app.live import wire
from sessions_app.live.bounded_log import BoundedLog
from sessions_app.live.hub import HubTaken, open_hub
from sessions_app.live.mailbox import Mailbox

logger = logging.getLogger(__name__)

FIRST_RETRY_SECONDS: Final = 0.05
LAST_RETRY_SECONDS: Final = 1.0
JOIN_SECONDS: Final = 1.0
"""How long joining a group waits for a connection that is just being made."""


class UnixSocketChannelLayer(BaseChannelLayer):  # type: ignore[misc,unused-ignore]
    """Channels' layer interface. Meant for groups; a plain channel name reaches all who receive on it."""

    extensions = ("groups", "flush")

    def __init__(
        self,
        *,
        path: str,
        hosts_hub: bool | None = None,
        capacity: int = 5000,
        max_bytes: int = 8 << 20,
        max_buffer: int = 8 << 20,
        **options: Any,
    ) -> None:
        """``hosts_hub``: whether this process may be the hub; by default the web process may.

        ``capacity`` and ``max_bytes`` bound what waits on one channel, ``max_buffer`` what waits for a peer.
        """
        super().__init__(capacity=capacity, **options)
        self.path = Path(path)
        self.hosts_hub = settings.HOLDFAST_ROLE == "web" if hosts_hub is None else hosts_hub
        self.max_bytes = max_bytes
        self.max_buffer = max_buffer
        self.dropped = BoundedLog(logger, "live.layer.dropped")
        self._nodes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Node] = WeakKeyDictionary()

    async def serve(self) -> None:
        """Be the hub on this loop if this process may, so that others find it before anybody reads here."""
        await self._node().linked()

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        self.require_valid_channel_name(channel)
        self._publish(f"c:{channel}", message)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.require_valid_group_name(group)
        self._publish(f"g:{group}", message)

    async def new_channel(self, prefix: str = "specific") -> str:
        channel = f"{prefix}.{uuid.uuid4().hex}!"
        self._node().open(channel)
        return channel

    async def receive(self, channel: str) -> dict[str, Any]:
        """The next message. Cancelling it ends the channel and its memberships, as Channels expects."""
        node = self._node()
        mailbox = node.open(channel)
        try:
            return await mailbox.get()
        except BaseException:
            node.close_channel(channel)
            raise

    async def group_add(self, group: str, channel: str) -> None:
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        node = self._node()
        node.join(f"g:{group}", channel)
        await node.linked()

    async def group_discard(self, group: str, channel: str) -> None:
        self.require_valid_group_name(group)
        self._node().leave(f"g:{group}", channel)

    async def flush(self) -> None:
        """Forget every channel and membership of this loop."""
        self._node().clear()

    async def close(self) -> None:
        """End this loop's part of the layer: its connection, or the hub if it is here."""
        node = self._nodes.pop(asyncio.get_running_loop(), None)
        if node is not None:
            await node.close()

    def _publish(self, key: str, message: dict[str, Any]) -> None:
        payload = wire.encode(message)
        if len(payload) > wire.LARGEST_PAYLOAD:
            self.dropped.add("too large")
            return
        self._node().publish(key, payload)

    def _node(self) -> "_Node":
        loop = asyncio.get_running_loop()
        node = self._nodes.get(loop)
        if node is None:
            node = self._nodes[loop] = _Node(self)
        return node


class _Link(Protocol):
    """How a node reaches the others: it is the hub, or it is connected to it."""

    def publish(self, key: str, payload: bytes) -> None: ...
    def join(self, key: str) -> None: ...
    def leave(self, key: str) -> None: ...
    async def close(self) -> None: ...


class _Node:
    """One loop's part of the layer."""

    def __init__(self, layer: UnixSocketChannelLayer) -> None:
        self._layer = layer
        self._mailboxes: dict[str, Mailbox] = {}
        self._members: dict[str, set[str]] = {}
        self._backlog: deque[tuple[str, bytes]] = deque()
        self._backlog_bytes = 0
        self._link: _Link | None = None
        self._linking: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._retry_seconds = FIRST_RETRY_SECONDS
        self._is_closed = False

    # Channels and groups of this loop

    def open(self, channel: str) -> Mailbox:
        mailbox = self._mailboxes.get(channel)
        if mailbox is None:
            mailbox = Mailbox(capacity=self._layer.capacity, max_bytes=self._layer.max_bytes)
            self._mailboxes[channel] = mailbox
            self.join(f"c:{channel}", channel)
        return mailbox

    def close_channel(self, channel: str) -> None:
        self._mailboxes.pop(channel, None)
        for key in [key for key, members in self._members.items() if channel in members]:
            self.leave(key, channel)

    def join(self, key: str, channel: str) -> None:
        members = self._members.setdefault(key, set())
        if not members and self._link is not None:
            self._link.join(key)
        members.add(channel)
        self._seek_link()

    def leave(self, key: str, channel: str) -> None:
        members = self._members.get(key)
        if members is None:
            return
        members.discard(channel)
        if not members:
            del self._members[key]
            if self._link is not None:
                self._link.leave(key)

    def clear(self) -> None:
        for channel in list(self._mailboxes):
            self.close_channel(channel)
        for key in list(self._members):
            for channel in list(self._members.get(key, ())):
                self.leave(key, channel)

    def deliver(self, key: str, payload: bytes) -> None:
        for channel in self._members.get(key, ()):
            mailbox = self._mailboxes.get(channel)
            if mailbox is not None and not mailbox.put(payload):
                self._layer.dropped.add("a receiver does not keep up")

    # Publishing

    def publish(self, key: str, payload: bytes) -> None:
        if self._link is not None:
            self._link.publish(key, payload)
            return
        self._seek_link()
        if self._linking is None or self._backlog_bytes + len(payload) > self._layer.max_buffer:
            self._layer.dropped.add("no hub")
            return
        self._backlog.append((key, payload))
        self._backlog_bytes += len(payload)

    def _empty_backlog(self) -> None:
        waiting, self._backlog, self._backlog_bytes = self._backlog, deque(), 0
        if not waiting:
            return
        if self._link is None:
            self._layer.dropped.add("no hub", count=len(waiting))
            return
        for key, payload in waiting:
            self._link.publish(key, payload)

    # The link

    async def linked(self) -> None:
        """Wait a little for a link that is being made; without one the caller goes on as well."""
        self._seek_link()
        if self._linking is not None:
            await asyncio.wait({self._linking}, timeout=JOIN_SECONDS)

    def lost(self, link: object) -> None:
        """The connection broke: look for the hub again if anybody here listens."""
        if link is self._link:
            self._link = None
            self._seek_link_later()

    def _seek_link(self) -> None:
        if self._link is None and self._linking is None and self._retry is None and not self._is_closed:
            self._linking = asyncio.get_running_loop().create_task(self._establish())

    def _seek_link_later(self) -> None:
        """Not before a moment: a hub that is away must cost nothing."""
        if self._is_closed or self._retry is not None:
            return
        self._retry = asyncio.get_running_loop().call_later(self._retry_seconds, self._retry_now)
        self._retry_seconds = min(2 * self._retry_seconds, LAST_RETRY_SECONDS)

    def _retry_now(self) -> None:
        self._retry = None
        if self._members or self._layer.hosts_hub:
            self._seek_link()

    async def _establish(self) -> None:
        try:
            self._link = await self._open_link()
            self._retry_seconds = FIRST_RETRY_SECONDS
            for key in self._members:
                self._link.join(key)
        except OSError as away:
            level = logging.WARNING if self._layer.hosts_hub else logging.DEBUG
            logger.log(level, "live.layer.away", extra={"reason": str(away)})
            self._seek_link_later()
        finally:
            self._linking = None
            self._empty_backlog()

    async def _open_link(self) -> _Link:
        layer = self._layer
        if layer.hosts_hub:
            try:
                return await open_hub(
                    layer.path, deliver=self.deliver, max_buffer=layer.max_buffer, dropped=layer.dropped
                )
            except HubTaken:
                logger.warning("live.layer.hub_taken", extra={"path": str(layer.path)})
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: _Connection(self, layer), str(layer.path))
        if not connection.is_open:
            raise ConnectionResetError("the hub closed the connection at once")
        return connection

    async def close(self) -> None:
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._linking is not None:
            self._linking.cancel()
            await asyncio.wait({self._linking})
        if self._link is not None:
            await self._link.close()


class _Connection(asyncio.Protocol):
    """A client's connection to the hub."""

    def __init__(self, node: _Node, layer: UnixSocketChannelLayer) -> None:
        self._node = node
        self._layer = layer
        self._reader = wire.FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._node.lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._node.deliver(frame.key, frame.payload)
        except wire.MalformedFrame as malformed:
            logger.warning("live.layer.malformed", extra={"reason": str(malformed)})
            if self._transport is not None:
                self._transport.abort()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def publish(self, key: str, payload: bytes) -> None:
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() > self._layer.max_buffer:
            self._layer.dropped.add("the hub does not keep up")
            return
        transport.write(wire.pack(wire.PUBLISH, key, payload))

    def join(self, key: str) -> None:
        self._control(wire.JOIN, key)

    def leave(self, key: str) -> None:
        self._control(wire.LEAVE, key)

    def _control(self, op: int, key: str) -> None:
        """Never dropped while connected: a lost join would make a listener deaf for good."""
        if self._transport is not None:
            self._transport.write(wire.pack(op, key))

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        # The connection ends in the loop's next turn.
        await asyncio.sleep(0)
