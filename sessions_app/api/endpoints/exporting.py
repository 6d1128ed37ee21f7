"""A session as a file."""

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Final

from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

from sessions_app import sessions
from sessions_app.api import answers, bodies, threads
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation
from sessions_app.sessions import export

_KINDS: Final = {"json": "application/json", "markdown": "text/markdown; charset=utf-8"}
_PIECE: Final = 64 * 1024


class Export(SessionEndpoint):
    @operation("The session as a file", query=bodies.ExportQuery)
    def get(self, *, session_id: str, query: bodies.ExportQuery) -> Coroutine[Any, Any, HttpResponseBase]:
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        pieces = _whole_pieces(export.write(session, form=query.format, now=timezone.now()))
        headers = answers.attachment_headers(export.file_name(session, query.format))
        return _stream(pieces, kind=_KINDS[query.format], headers=headers)


async def _stream(pieces: Iterator[bytes], *, kind: str, headers: dict[str, str]) -> HttpResponseBase:
    return StreamingHttpResponse(_sent(pieces), content_type=kind, headers=headers)


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is read in a thread when the last one was sent."""
    following = threads.in_thread(next)
    while piece := await following(pieces, b""):
        yield piece


def _whole_pieces(pieces: Iterator[str]) -> Iterator[bytes]:
    """The same in pieces that are worth a thread each."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece.encode()
        if len(gathered) >= _PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
