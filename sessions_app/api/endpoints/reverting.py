"""Going back in a session: stage, clear; the next prompt commits."""

from django.http import HttpResponse
from django.utils import timezone

from schema import views
from schema.problems import MessageNotFound, SessionBusy
from sessions_app import sessions
from sessions_app.api import answers, bodies
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation
from sessions_app.sessions import revert


class Revert(SessionEndpoint):
    @operation(
        "Hide the transcript from a message on, once the next prompt comes",
        body=bodies.Revert,
        answers={200: views.Session},
        refusals=(MessageNotFound, SessionBusy),
    )
    def post(self, *, session_id: str, body: bodies.Revert) -> HttpResponse:
        revert.stage(session_id=session_id, message_id=body.message_id, now=timezone.now())
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        return answers.json(
            sessions.session_shape(session, sessions.get_status(session.pk, now=timezone.now()))
        )

    @operation("Hide nothing after all", answers={204: None})
    def delete(self, *, session_id: str) -> HttpResponse:
        revert.clear(session_id=session_id, now=timezone.now())
        return answers.nothing()
