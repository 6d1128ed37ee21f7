"""Server-sent events: the same reader as the socket's, for ``GET /sessions/{id}/stream``.

id: 12                    only durable events have one; it is what Last-Event-ID brings back
event: event              event, open, delta, status or ready
data: {...}               the Event itself, or the frame of contract section 4
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sessions_app.live import access, entries, reads
from sessions_app.live.entries import Entry
from sessions_app.live.frames import Frame
from sessions_app.live.reader import Reader

CONTENT_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Proxies that buffer would hold the stream back."""


async def stream(session_id: str, entry: Entry, after: int) -> AsyncGenerator[bytes, None]:
    """The bytes of the stream, with a comment about every fifteen seconds, until the session is deleted
    or what let the client in does not hold any more.

    A client that goes away closes the iterator; one that goes on with the last id misses nothing. Raises
    SessionNotFound with the first step.
    """
    await reads.run(access.check, user_id=entry.user_id, session_id=session_id)
    yield b"retry: 1000\n\n"
    reader = Reader(session_id, after=after)
    async with entries.watched(entry, reader.leave), aclosing(reader.frames()) as frames:
        async for frame in frames:
            yield encode(frame)


def encode(frame: Frame) -> bytes:
    """JSON holds no line break, so every frame is one data line."""
    if frame.kind == "ping":
        return b": ping\n\n"
    position = f"id: {frame.seq}\n" if frame.kind == "event" else ""
    return f"{position}event: {frame.kind}\ndata: {frame.json}\n\n".encode()
