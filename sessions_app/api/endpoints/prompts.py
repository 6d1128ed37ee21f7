"""Prompts of a session: admit, list, switch, withdraw."""

from collections.abc import Mapping
from typing import Final

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from schema.ids import CLIENT_ID
from schema.problems import PromptNotFound
from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import SessionEndpoint

ADMISSION_ORDER: Final = paging.Order(name="prompts", columns=("admitted_seq",), direction="asc")


class Prompts(SessionEndpoint):
    def get(self, request: Request, session_id: str) -> HttpResponse:
        query = bodies.read_query(request, bodies.PromptsQuery)
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        rows = sessions.prompts_of(session, state=query.state)
        page = paging.cut(rows, order=ADMISSION_ORDER, query=query)
        return answers.json(page.shape([sessions.prompt_shape(row) for row in page.rows]))

    def post(self, request: Request, session_id: str) -> HttpResponse:
        body = bodies.read(request, bodies.NewPrompt)
        admission = sessions.prompt(
            session_id=session_id,
            text=body.text,
            now=timezone.now(),
            message_id=body.id,
            delivery=body.delivery or "steer",
            wake=body.wake is not False,
        )
        status = 201 if admission.created else 200
        return answers.json(sessions.prompt_shape(admission.prompt), status=status)


class OnePrompt(SessionEndpoint):
    def find_resource(self, names: Mapping[str, str]) -> None:
        super().find_resource(names)
        message_id = names["message_id"]
        session = sessions.get(user_id=self.user_id, session_id=names["session_id"])
        rows = sessions.prompts_of(session, state="all")
        if not CLIENT_ID.match(message_id) or not rows.filter(pk=message_id).exists():
            raise PromptNotFound(message_id)

    def patch(self, request: Request, session_id: str, message_id: str) -> HttpResponse:
        body = bodies.read(request, bodies.PromptChange)
        prompt = sessions.change_delivery(
            session_id=session_id, message_id=message_id, delivery=body.delivery, now=timezone.now()
        )
        return answers.json(sessions.prompt_shape(prompt))

    def delete(self, request: Request, session_id: str, message_id: str) -> HttpResponse:
        sessions.withdraw(session_id=session_id, message_id=message_id, now=timezone.now())
        return answers.nothing()
