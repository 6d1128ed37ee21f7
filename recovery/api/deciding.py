"""Deciding what is unknown, and answering calls that wait for a person."""

from django.http import HttpResponse
from django.utils import timezone

from recovery import decisions
from recovery.api import bodies
from sessions_app import sessions
from sessions_app.api import answers
from sessions_app.api.endpoints.attempts import OfAttempt, with_facts
from sessions_app.api.endpoints.calls import OfCall
from sessions_app.api.operation import operation


class DecideAttempt(OfAttempt):
    @operation("Abandon or retry an unknown attempt, once", body=bodies.AttemptDecision, refusals=(409,))
    def post(self, *, attempt_id: str, body: bodies.AttemptDecision) -> HttpResponse:
        decided = decisions.decide_attempt(
            session_id=self.attempt.session_id,
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
        refusals=(409,),
    )
    def post(self, *, call_id: str, body: bodies.CallDecision) -> HttpResponse:
        decided = decisions.answer_or_mark(
            session_id=self.call.session_id,
            call_id=call_id,
            action=body.action,
            by=self.request.user.get_username(),
            reason=body.reason or None,
            result=body.result,
            now=timezone.now(),
        )
        return answers.json(sessions.tool_call_shape(decided))
