"""Files: whatever they hold, they are handed over to be kept, piece by piece, never shown as a page."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

from django.http import HttpResponseBase, StreamingHttpResponse

from sessions_app.api import threads

ANY: Final = "*/*"
"""What an address of files produces: one that is asked for by name is not refused for its type."""

_PIECE: Final = 64 * 1024


async def stream(pieces: Iterator[bytes], *, kind: str, name: str) -> HttpResponseBase:
    """``pieces`` run in a thread, each when the last one was sent. ``name``: letters, digits, dots, dashes."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }
    return StreamingHttpResponse(_sent(_gathered(pieces)), content_type=kind, headers=headers)


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = threads.in_thread(next)
    while piece := await following(pieces, b""):
        yield piece


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same in pieces that are worth a thread each."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= _PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
