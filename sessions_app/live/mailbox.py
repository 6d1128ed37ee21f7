"""What waits to be received on one channel: bounded, and the newest is dropped when it is full."""

import asyncio
from typing import Any

from sessions_app.live import wire


class Mailbox:
    """Filled and emptied on one loop."""

    def __init__(self, *, capacity: int, max_bytes: int) -> None:
        self._capacity = capacity
        self._max_bytes = max_bytes
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._bytes = 0

    def put(self, payload: bytes) -> bool:
        """False when there is no room: the payload is dropped."""
        if self._queue.qsize() >= self._capacity or self._bytes + len(payload) > self._max_bytes:
            return False
        self._bytes += len(payload)
        self._queue.put_nowait(payload)
        return True

    async def get(self) -> dict[str, Any]:
        """The next message that can be read, a copy of the receiver's own."""
        while True:
            payload = await self._queue.get()
            self._bytes -= len(payload)
            message = wire.decode(payload)
            if message is not None:
                return message
