"""Sessions: create or adopt, list, look, change, delete."""

from typing import Final

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import Endpoint, SessionEndpoint
from sessions_app.models import Session
from sessions_app.sessions import undecided

NEWEST_ACTIVITY_FIRST: Final = paging.Order(name="sessions", columns=("active_at", "id"), direction="desc")


class Sessions(Endpoint):
    def get(self, request: Request) -> HttpResponse:
        query = bodies.read_query(request, bodies.SessionsQuery)
        rows = sessions.listed(user_id=self.user_id, archived=query.archived, query=query.q)
        if query.needs_decision is not None:
            rows = undecided.needing_decision(rows, query.needs_decision)
        page = paging.cut(rows, order=NEWEST_ACTIVITY_FIRST, query=query)
        found = sessions.statuses(page.rows, now=timezone.now())
        return answers.json(page.shape([sessions.session_shape(row, found[row.pk]) for row in page.rows]))

    def post(self, request: Request) -> HttpResponse:
        body = bodies.read(request, bodies.NewSession)
        now = timezone.now()
        creation = sessions.create(
            user_id=self.user_id,
            now=now,
            session_id=body.id,
            title=body.title or "",
            agent=body.agent,
            model=body.model,
            recovery_policy=body.recovery_policy,
        )
        return _answer(creation.session, status=201 if creation.created else 200)


class OneSession(SessionEndpoint):
    def get(self, request: Request, session_id: str) -> HttpResponse:
        bodies.read_query(request, bodies.NoQuery)
        return _answer(sessions.get(user_id=self.user_id, session_id=session_id))

    def patch(self, request: Request, session_id: str) -> HttpResponse:
        body = bodies.read(request, bodies.SessionChange)
        return _answer(sessions.update(session_id=session_id, now=timezone.now(), **body.given()))

    def delete(self, request: Request, session_id: str) -> HttpResponse:
        sessions.delete(session_id=session_id, now=timezone.now())
        return answers.nothing()


def _answer(session: Session, *, status: int = 200) -> HttpResponse:
    found = sessions.get_status(session, now=timezone.now())
    return answers.json(sessions.session_shape(session, found), status=status)
