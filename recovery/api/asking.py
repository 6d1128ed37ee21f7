"""Asking providers and tools what became of what is unknown. Who asks waits; no thread of the API does."""

from collections.abc import Callable, Coroutine
from typing import Any

from django.http import HttpResponse
from django.utils import timezone

from recovery import inquiries
from schema import views
from schema.problems import AlreadyDecided, CannotAsk, NotUnknown
from sessions_app import sessions
from sessions_app.api import answers, threads
from sessions_app.api.endpoints.attempts import OfAttempt, with_facts
from sessions_app.api.endpoints.calls import OfCall
from sessions_app.api.operation import operation


class AskAboutAttempt(OfAttempt):
    @operation(
        "Have the provider asked about an unknown attempt",
        description="An inquiry is no decision: it can be repeated, and only a conclusive answer settles.",
        answers={202: views.AttemptWithFacts},
        refusals=(NotUnknown, CannotAsk),
    )
    def post(self, *, attempt_id: str) -> Coroutine[Any, Any, HttpResponse]:
        look = inquiries.about_attempt(
            session_id=self.row.session_id, attempt_id=attempt_id, now=timezone.now()
        )

        def answer() -> HttpResponse:
            self.row.refresh_from_db()
            return answers.json(with_facts(self.row), status=202)

        return ask(look, answer)


class AskAboutCall(OfCall):
    @operation(
        "Have the tool asked about an unknown call",
        description="A conclusive answer marks the call done or not done, as a person would.",
        answers={202: views.ToolCall},
        refusals=(NotUnknown, AlreadyDecided, CannotAsk),
    )
    def post(self, *, call_id: str) -> Coroutine[Any, Any, HttpResponse]:
        look = inquiries.about_call(session_id=self.row.session_id, call_id=call_id, now=timezone.now())

        def answer() -> HttpResponse:
            self.row.refresh_from_db()
            return answers.json(sessions.tool_call_shape(self.row), status=202)

        return ask(look, answer)


async def ask(look: inquiries.Look | None, answer: Callable[[], HttpResponse]) -> HttpResponse:
    """Look aside, store what was found, answer with what is stored then."""
    settle = None if look is None else await threads.aside(look)()

    def finish() -> HttpResponse:
        if settle is not None:
            settle()
        return answer()

    return await threads.in_thread(finish)()
