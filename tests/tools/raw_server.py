"""A server that answers each connection with the bytes a test gives it, and remembers what it was sent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawServer:
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    """Heads and bodies as they arrived, one for each connection that sent a whole request."""
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[RawServer]:
    """``answer`` gets the request and writes; returning closes the connection."""
    told = RawServer()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.connections += 1
        try:
            request = await _request(reader)
            told.requests.append(request)
            await answer(request, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head + await reader.readexactly(length)


def response(
    body: bytes = b"", *, status: str = "200 OK", content_type: str = "text/html", headers: str = ""
) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    )
    return head.encode() + body


def always(content: bytes) -> Answer:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return answer
