"""Deciding what is unknown, and answering calls that wait for a person."""

from django.http import HttpResponse
from django.utils import timezone

from recovery import decisions
from recovery.api import bodies
from schema import views
from schema.problems import AlreadyDecided, NotUnknown, NotWaiting, Superseded
from sessions_app import sessions
from sessions_app.api import answers
from sessions_app.api.endpoints.attempts import OfAttempt, with_facts
from sessions_app.api.endpoints.calls import OfCall
from sessions_app.api.operation import operation


class DecideAttempt(OfAttempt):
    @operation(
        "Abandon or retry an unknown attempt, once",
        description="The unknown request is never sent again: a retry is a new attempt, whose model is told.",
        body=bodies.AttemptDecision,
        answers={200: views.AttemptWithFacts},
        refusals=(AlreadyDecided, NotUnknown, Superseded),
    )
    def post(self, *, attempt_id: str, body: bodies.AttemptDecision) -> HttpResponse:
        decided = decisions.decide_attempt(
            session_id=self.row.session_id,
            attempt_id=attempt_id,
            action=body.action,
            by=self.request.user.get_username(),
            reason=body.reason or None,
            now=timezone.now(),
        )
        return answers.json(with_facts(decided))


class DecideCall(OfCall):
    @operation(
        "Answer a waiting call, or say what became of an unknown one, once",
        body=bodies.CallDecision,
        answers={200: views.ToolCall},
        refusals=(AlreadyDecided, NotUnknown, NotWaiting, Superseded),
    )
    def post(self, *, call_id: str, body: bodies.CallDecision) -> HttpResponse:
        decided = decisions.answer_or_mark(
            session_id=self.row.session_id,
            call_id=call_id,
            action=body.action,
            by=self.request.user.get_username(),
            reason=body.reason or None,
            result=body.result,
            now=timezone.now(),
        )
        return answers.json(sessions.tool_call_shape(decided))
