"""Tool calls: what was asked for, what became of it, and what waits for a person."""

import re
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase

from schema.ids import MAX_LENGTH
from schema.problems import CallNotFound
from sessions_app import sessions
from sessions_app.api import answers, bodies, files, paging, problems
from sessions_app.api.endpoint import Endpoint, require_session
from sessions_app.api.operation import operation
from sessions_app.models import MessagePart, ToolOverflow
from sessions_app.sessions import export, undecided

NEWEST_FIRST: Final = paging.Order(name="tool-calls", columns=("started_at", "id"), direction="desc")
_TEXT: Final = ("text/plain; charset=utf-8", "txt")
_BYTES: Final = ("application/octet-stream", "bin")
_PART_ID: Final = re.compile(r"prt_[A-Za-z0-9-]{8,64}\Z")


class ToolCalls(Endpoint):
    @operation("Own tool calls, newest first", query=bodies.ToolCallsQuery)
    def get(self, *, query: bodies.ToolCallsQuery) -> HttpResponse:
        if query.session is not None:
            require_session(query.session, user_id=self.user_id)
        rows = sessions.calls_of(user_id=self.user_id, session_id=query.session)
        if query.state is not None:
            rows = rows.filter(state=query.state)
        if query.needs_decision is not None:
            rows = undecided.undecided_calls(rows, query.needs_decision)
        page = paging.cut(rows, order=NEWEST_FIRST, query=query)
        return answers.json(page.shape([sessions.tool_call_shape(row) for row in page.rows]))


class OfCall(Endpoint):
    """An address inside one tool call of the user."""

    call: MessagePart

    def find_resource(self, names: Mapping[str, str]) -> None:
        call_id = names["call_id"]
        rows = sessions.calls_of(user_id=self.user_id)
        found = rows.filter(pk=call_id).first() if _PART_ID.match(call_id) else None
        if found is None:
            raise CallNotFound(call_id[:MAX_LENGTH])
        self.call = found


class OneCall(OfCall):
    @operation("One tool call")
    def get(self, *, call_id: str) -> HttpResponse:
        return answers.json(sessions.tool_call_shape(self.call))


class CallOutput(OfCall):
    """What a tool returned may be anything."""

    produces = files.ANY

    @operation("The whole output of a call whose shape holds only its beginning")
    def get(self, *, call_id: str) -> Coroutine[Any, Any, HttpResponseBase]:
        stored = self._stored()
        if stored is None:
            raise problems.NoOverflow(call_id)
        kind, suffix = _TEXT if stored.is_text else _BYTES
        return files.stream(export.content(stored.pk), kind=kind, name=f"{call_id}.{suffix}")

    def _stored(self) -> ToolOverflow | None:
        rows = ToolOverflow.objects.filter(pk=self.call.overflow, session_id=self.call.session_id)
        return rows.defer("content").first()
