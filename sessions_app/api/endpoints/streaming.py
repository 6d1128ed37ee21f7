"""The live stream over server-sent events, and tickets for the socket."""

from collections.abc import Coroutine
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from schema import views
from sessions_app.api import answers, bodies, problems
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation
from sessions_app.live import sse, tickets
from sessions_app.live.entries import Entry
from sessions_app.sessions import shapes


class Stream(SessionEndpoint):
    produces = sse.CONTENT_TYPE

    @operation(
        "Events and live text over server-sent events",
        description=(
            "Durable events carry their seq as id; text that is still written comes as deltas without one. "
            "Connect again with the last id: nothing is missed and nothing comes twice."
        ),
        query=bodies.StreamQuery,
        files={sse.CONTENT_TYPE: None},
        headers={"Last-Event-ID": "The last id that was read; counts before the parameter after."},
    )
    def get(
        self, *, session_id: str, query: bodies.StreamQuery
    ) -> Coroutine[Any, Any, StreamingHttpResponse]:
        return _stream(session_id, entry=_entry(self.request), after=_after(self.request, query))


class Ticket(SessionEndpoint):
    @operation("A ticket for the WebSocket", body=bodies.Nothing, answers={201: views.Ticket})
    def post(self, *, session_id: str) -> HttpResponse:
        token_id = self.request.auth if isinstance(self.request.auth, int) else None
        issued = tickets.issue(user_id=self.user_id, session_id=session_id, token_id=token_id)
        return answers.json({"ticket": issued.ticket, "expires": shapes.rfc3339(issued.expires)}, status=201)


async def _stream(session_id: str, *, entry: Entry, after: int) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        sse.stream(session_id, entry, after), content_type=sse.CONTENT_TYPE, headers=sse.HEADERS
    )


def _entry(request: Request) -> Entry:
    """By the token, if the request came with one, else by the web session."""
    user_id = request.user.pk
    assert user_id is not None
    if isinstance(request.auth, int):
        return Entry(user_id=user_id, token_id=request.auth)
    return Entry(user_id=user_id, session_key=request.session.session_key)


def _after(request: HttpRequest, query: bodies.StreamQuery) -> int:
    """Where to go on: a browser that connects again sends the header beside the address it began with."""
    last = request.META.get("HTTP_LAST_EVENT_ID", "")
    if not last:
        return query.after or 0
    if not (last.isascii() and last.isdigit() and len(last) <= bodies.MAX_SEQ_DIGITS):
        raise problems.InvalidFields({"Last-Event-ID": ["This must be the id of an event of this stream."]})
    return int(last)
