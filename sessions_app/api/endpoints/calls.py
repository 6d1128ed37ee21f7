"""Tool calls: what was asked for, what became of it, and what waits for a person."""

import re
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse, HttpResponseBase

from schema import views
from schema.problems import CallNotFound, SessionNotFound
from sessions_app import sessions
from sessions_app.api import answers, bodies, files, paging, problems
from sessions_app.api.endpoints.owned import OneOwned, Owned
from sessions_app.api.operation import operation
from sessions_app.models import MessagePart, ToolOverflow
from sessions_app.sessions import export, undecided

if TYPE_CHECKING:
    from django.db.models import QuerySet

_TEXT: Final = ("text/plain; charset=utf-8", "txt")
_BYTES: Final = ("application/octet-stream", "bin")


class _OwnCalls(Owned[MessagePart]):
    order = paging.Order(name="tool-calls", columns=("started_at", "id"), direction="desc")

    def rows(self, session_id: str | None = None) -> "QuerySet[MessagePart]":
        return sessions.calls_of(user_id=self.user_id, session_id=session_id)

    def needing(self, rows: "QuerySet[MessagePart]", wanted: bool) -> "QuerySet[MessagePart]":
        return undecided.undecided_calls(rows, wanted)


class ToolCalls(_OwnCalls):
    @operation(
        "Own tool calls, newest first",
        query=bodies.ToolCallsQuery,
        answers={200: views.ToolCallPage},
        refusals=(SessionNotFound,),
    )
    def get(self, *, query: bodies.ToolCallsQuery) -> HttpResponse:
        return self.listed(query, lambda rows: [sessions.tool_call_shape(row) for row in rows])


class OfCall(_OwnCalls, OneOwned[MessagePart]):
    """An address inside one tool call of the user."""

    missing = (CallNotFound,)
    name = "call_id"
    pattern = re.compile(r"prt_[A-Za-z0-9-]{8,64}\Z")


class OneCall(OfCall):
    @operation("One tool call", answers={200: views.ToolCall})
    def get(self, *, call_id: str) -> HttpResponse:
        return answers.json(sessions.tool_call_shape(self.row))


class CallOutput(OfCall):
    """What a tool returned may be anything."""

    produces = files.ANY

    @operation(
        "The whole output of a call whose shape holds only its beginning",
        files={_TEXT[0]: None, _BYTES[0]: None},
        refusals=(problems.NoOverflow,),
    )
    def get(self, *, call_id: str) -> Coroutine[Any, Any, HttpResponseBase]:
        stored = self._stored()
        if stored is None:
            raise problems.NoOverflow(call_id)
        kind, suffix = _TEXT if stored.is_text else _BYTES
        return files.stream(export.content(stored.pk), kind=kind, name=f"{call_id}.{suffix}")

    def _stored(self) -> ToolOverflow | None:
        rows = ToolOverflow.objects.filter(pk=self.row.overflow, session_id=self.row.session_id)
        return rows.defer("content").first()
