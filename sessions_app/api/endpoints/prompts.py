"""Prompts of a session: admit, list, switch, withdraw."""

from collections.abc import Mapping
from typing import Final

from django.http import HttpResponse
from django.utils import timezone

from schema.ids import CLIENT_ID
from schema.inputs import PromptView
from schema.problems import PromptNotFound
from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation

ADMISSION_ORDER: Final = paging.Order(name="prompts", columns=("admitted_seq",), direction="asc")


class Prompts(SessionEndpoint):
    @operation("Prompts in admission order", query=bodies.PromptsQuery)
    def get(self, *, session_id: str, query: bodies.PromptsQuery) -> HttpResponse:
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        rows = sessions.prompts_of(session, state=query.state)
        page = paging.cut(rows, order=ADMISSION_ORDER, query=query)
        return answers.json(page.shape([sessions.prompt_shape(row) for row in page.rows]))

    @operation(
        "Admit a prompt; the same again is the same record",
        body=bodies.NewPrompt,
        answers={201: PromptView, 200: PromptView},
        refusals=(409, 422),
    )
    def post(self, *, session_id: str, body: bodies.NewPrompt) -> HttpResponse:
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

    @operation(
        "Switch a pending prompt", body=bodies.PromptChange, answers={200: PromptView}, refusals=(409,)
    )
    def patch(self, *, session_id: str, message_id: str, body: bodies.PromptChange) -> HttpResponse:
        prompt = sessions.change_delivery(
            session_id=session_id, message_id=message_id, delivery=body.delivery, now=timezone.now()
        )
        return answers.json(sessions.prompt_shape(prompt))

    @operation("Withdraw a pending prompt", answers={204: None}, refusals=(409,))
    def delete(self, *, session_id: str, message_id: str) -> HttpResponse:
        sessions.withdraw(session_id=session_id, message_id=message_id, now=timezone.now())
        return answers.nothing()
