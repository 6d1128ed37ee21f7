"""Sessions: create or adopt, list, look, change, delete."""

from typing import Final

from django.http import HttpResponse
from django.utils import timezone

from schema import views
from schema.problems import InvalidId, SessionIdUnavailable
from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import Endpoint, SessionEndpoint
from sessions_app.api.operation import operation
from sessions_app.models import Session
from sessions_app.sessions import undecided

NEWEST_ACTIVITY_FIRST: Final = paging.Order(name="sessions", columns=("active_at", "id"), direction="desc")


class Sessions(Endpoint):
    @operation(
        "Own sessions, newest activity first", query=bodies.SessionsQuery, answers={200: views.SessionPage}
    )
    def get(self, *, query: bodies.SessionsQuery) -> HttpResponse:
        rows = sessions.listed(user_id=self.user_id, archived=query.archived, query=query.q)
        if query.needs_decision is not None:
            rows = undecided.needing_decision(rows, query.needs_decision)
        page = paging.cut(rows, order=NEWEST_ACTIVITY_FIRST, query=query)
        found = sessions.statuses([row.pk for row in page.rows], now=timezone.now())
        return answers.json(page.shape([sessions.session_shape(row, found[row.pk]) for row in page.rows]))

    @operation(
        "Create a session, or adopt the own one that has this id",
        description="With an id it can be sent again: an own session of this id is answered unchanged.",
        body=bodies.NewSession,
        answers={201: views.Session, 200: views.Session},
        refusals=(InvalidId, SessionIdUnavailable),
    )
    def post(self, *, body: bodies.NewSession) -> HttpResponse:
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
    @operation("One session", answers={200: views.Session})
    def get(self, *, session_id: str) -> HttpResponse:
        return _answer(sessions.get(user_id=self.user_id, session_id=session_id))

    @operation("Change what is given", body=bodies.SessionChange, answers={200: views.Session})
    def patch(self, *, session_id: str, body: bodies.SessionChange) -> HttpResponse:
        return _answer(sessions.update(session_id=session_id, now=timezone.now(), **body.given()))

    @operation("Stop its work and delete it for ever", answers={204: None})
    def delete(self, *, session_id: str) -> HttpResponse:
        sessions.delete(session_id=session_id, now=timezone.now())
        return answers.nothing()


def _answer(session: Session, *, status: int = 200) -> HttpResponse:
    found = sessions.get_status(session.pk, now=timezone.now())
    return answers.json(sessions.session_shape(session, found), status=status)
