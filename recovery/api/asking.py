"""Asking providers and tools what became of what is unknown."""

from django.http import HttpResponse
from django.utils import timezone

from recovery import inquiries
from sessions_app import sessions
from sessions_app.api import answers
from sessions_app.api.endpoints.attempts import OfAttempt, with_facts
from sessions_app.api.endpoints.calls import OfCall
from sessions_app.api.operation import operation


class AskAboutAttempt(OfAttempt):
    @operation("Have the provider asked about an unknown attempt", answers={202: None}, refusals=(409,))
    def post(self, *, attempt_id: str) -> HttpResponse:
        inquiries.ask_about_attempt(
            session_id=self.attempt.session_id, attempt_id=attempt_id, now=timezone.now()
        )
        self.attempt.refresh_from_db()
        return answers.json(with_facts(self.attempt), status=202)


class AskAboutCall(OfCall):
    @operation("Have the tool asked about an unknown call", answers={202: None}, refusals=(409,))
    def post(self, *, call_id: str) -> HttpResponse:
        inquiries.ask_about_call(session_id=self.call.session_id, call_id=call_id, now=timezone.now())
        self.call.refresh_from_db()
        return answers.json(sessions.tool_call_shape(self.call), status=202)
