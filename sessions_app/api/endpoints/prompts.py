"""Prompts of a session: admit, list, switch, withdraw."""

from collections.abc import Mapping
from typing import Final

from django.http import HttpResponse
from django.utils import timezone

from schema import views
from schema.ids import CLIENT_ID
from schema.problems import (
    AlreadyPromoted,
    EmptyPrompt,
    InvalidId,
    PromptConflict,
    PromptNotFound,
    PromptTooLarge,
    SessionNotFound,
    Withdrawn,
)
from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation

ADMISSION_ORDER: Final = paging.Order(name="prompts", columns=("admitted_seq",), direction="asc")


class Prompts(SessionEndpoint):
    @operation("Prompts in admission order", query=bodies.PromptsQuery, answers={200: views.PromptPage})
    def get(self, *, session_id: str, query: bodies.PromptsQuery) -> HttpResponse:
        session = sessions.get(user_id=self.user_id, session_id=session_id)
        rows = sessions.prompts_of(session, state=query.state)
        page = paging.cut(rows, order=ADMISSION_ORDER, query=query)
        return answers.json(page.shape([sessions.prompt_shape(row) for row in page.rows]))

    @operation(
        "Admit a prompt; the same again is the same record",
        description=(
            "Once this answers, the prompt is kept for ever. Choose an id and send the same again whenever no "
            "answer came: it is admitted once, and the record is answered with 200 from then on."
        ),
        body=bodies.NewPrompt,
        answers={201: views.Prompt, 200: views.Prompt},
        refusals=(InvalidId, PromptConflict, PromptTooLarge, EmptyPrompt),
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
    missing = (SessionNotFound, PromptNotFound)

    def find_resource(self, names: Mapping[str, str]) -> None:
        super().find_resource(names)
        message_id = names["message_id"]
        session = sessions.get(user_id=self.user_id, session_id=names["session_id"])
        rows = sessions.prompts_of(session, state="all")
        if not CLIENT_ID.match(message_id) or not rows.filter(pk=message_id).exists():
            raise PromptNotFound(message_id)

    @operation(
        "Switch a pending prompt between steer and queue",
        body=bodies.PromptChange,
        answers={200: views.Prompt},
        refusals=(AlreadyPromoted, Withdrawn),
    )
    def patch(self, *, session_id: str, message_id: str, body: bodies.PromptChange) -> HttpResponse:
        prompt = sessions.change_delivery(
            session_id=session_id, message_id=message_id, delivery=body.delivery, now=timezone.now()
        )
        return answers.json(sessions.prompt_shape(prompt))

    @operation("Withdraw a pending prompt", answers={204: None}, refusals=(AlreadyPromoted, Withdrawn))
    def delete(self, *, session_id: str, message_id: str) -> HttpResponse:
        sessions.withdraw(session_id=session_id, message_id=message_id, now=timezone.now())
        return answers.nothing()
