"""The live stream over server-sent events, and tickets for the socket."""

from collections.abc import Coroutine
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from sessions_app.api import answers, bodies, problems
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.live import sse, tickets
from sessions_app.sessions import shapes


class Stream(SessionEndpoint):
    produces = sse.CONTENT_TYPE

    def get(self, request: Request, session_id: str) -> Coroutine[Any, Any, StreamingHttpResponse]:
        return _stream(session_id, user_id=self.user_id, after=_after(request))


class Ticket(SessionEndpoint):
    def post(self, request: Request, session_id: str) -> HttpResponse:
        bodies.read(request, bodies.Nothing)
        issued = tickets.issue(user_id=self.user_id, session_id=session_id)
        return answers.json({"ticket": issued.ticket, "expires": shapes.rfc3339(issued.expires)}, status=201)


async def _stream(session_id: str, *, user_id: int, after: int) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        sse.stream(session_id, user_id, after), content_type=sse.CONTENT_TYPE, headers=sse.HEADERS
    )


def _after(request: HttpRequest) -> int:
    """Where to go on: a browser that connects again sends the header beside the address it began with."""
    query = bodies.read_query(request, bodies.StreamQuery)
    last = request.META.get("HTTP_LAST_EVENT_ID", "")
    if not last:
        return query.after or 0
    if not (last.isascii() and last.isdigit() and len(last) <= bodies.MAX_SEQ_DIGITS):
        raise problems.InvalidFields({"Last-Event-ID": ["This must be the id of an event of this stream."]})
    return int(last)
