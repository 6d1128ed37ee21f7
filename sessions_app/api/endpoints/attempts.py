"""Attempts: each physical request to a provider, with its facts."""

import re
from typing import TYPE_CHECKING

from django.http import HttpResponse

from schema import views
from schema.problems import AttemptNotFound, SessionNotFound
from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoints.owned import OneOwned, Owned
from sessions_app.api.operation import operation
from sessions_app.models import ProviderAttempt
from sessions_app.sessions import shapes, undecided

if TYPE_CHECKING:
    from django.db.models import QuerySet


class _OwnAttempts(Owned[ProviderAttempt]):
    order = paging.Order(name="attempts", columns=("prepared_at", "id"), direction="desc")

    def rows(self, session_id: str | None = None) -> "QuerySet[ProviderAttempt]":
        return sessions.attempts_of(user_id=self.user_id, session_id=session_id)

    def needing(self, rows: "QuerySet[ProviderAttempt]", wanted: bool) -> "QuerySet[ProviderAttempt]":
        return undecided.undecided(rows, wanted)


class Attempts(_OwnAttempts):
    @operation(
        "Own attempts, newest first",
        query=bodies.AttemptsQuery,
        answers={200: views.AttemptPage},
        refusals=(SessionNotFound,),
    )
    def get(self, *, query: bodies.AttemptsQuery) -> HttpResponse:
        return self.listed(query, shapes.attempt_shapes)


class OfAttempt(_OwnAttempts, OneOwned[ProviderAttempt]):
    """An address inside one attempt of the user."""

    missing = (AttemptNotFound,)
    name = "attempt_id"
    pattern = re.compile(r"att_[A-Za-z0-9-]{8,64}\Z")


class OneAttempt(OfAttempt):
    @operation("One attempt with its facts in order", answers={200: views.AttemptWithFacts})
    def get(self, *, attempt_id: str) -> HttpResponse:
        return answers.json(with_facts(self.row))


def with_facts(attempt: ProviderAttempt) -> shapes.Shape:
    return {**shapes.attempt_shape(attempt), "facts": shapes.attempt_facts(attempt)}
