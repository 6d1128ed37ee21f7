"""A session as a file."""

from collections.abc import Coroutine
from typing import Any, Final

from django.http import HttpResponseBase
from django.utils import timezone

from schema import views
from sessions_app import sessions
from sessions_app.api import bodies, files
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation
from sessions_app.sessions import export

_KINDS: Final = {"json": "application/json", "markdown": "text/markdown; charset=utf-8"}


class Export(SessionEndpoint):
    produces = files.ANY

    @operation(
        "The session as a file",
        query=bodies.ExportQuery,
        files={_KINDS["json"]: views.Export, _KINDS["markdown"]: None},
    )
    def get(self, *, session_id: str, query: bodies.ExportQuery) -> Coroutine[Any, Any, HttpResponseBase]:
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        pieces = export.write(session, form=query.format, now=timezone.now())
        return files.stream(
            (piece.encode() for piece in pieces),
            kind=_KINDS[query.format],
            name=export.file_name(session, query.format),
        )
