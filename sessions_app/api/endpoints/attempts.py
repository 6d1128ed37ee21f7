"""Attempts: each physical request to a provider, with its facts."""

import re
from collections.abc import Mapping
from typing import Final

from django.http import HttpResponse

from schema.ids import MAX_LENGTH
from schema.problems import AttemptNotFound
from sessions_app import sessions
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import Endpoint, require_session
from sessions_app.api.operation import operation
from sessions_app.models import ProviderAttempt
from sessions_app.sessions import shapes, undecided

NEWEST_FIRST: Final = paging.Order(name="attempts", columns=("prepared_at", "id"), direction="desc")
_ATTEMPT_ID: Final = re.compile(r"att_[A-Za-z0-9-]{8,64}\Z")


class Attempts(Endpoint):
    @operation("Own attempts, newest first", query=bodies.AttemptsQuery)
    def get(self, *, query: bodies.AttemptsQuery) -> HttpResponse:
        if query.session is not None:
            require_session(query.session, user_id=self.user_id)
        rows = sessions.attempts_of(user_id=self.user_id, session_id=query.session)
        if query.state is not None:
            rows = rows.filter(state=query.state)
        if query.needs_decision is not None:
            rows = undecided.undecided(rows, query.needs_decision)
        page = paging.cut(rows, order=NEWEST_FIRST, query=query)
        return answers.json(page.shape([shapes.attempt_shape(row) for row in page.rows]))


class OfAttempt(Endpoint):
    """An address inside one attempt of the user."""

    attempt: ProviderAttempt

    def find_resource(self, names: Mapping[str, str]) -> None:
        attempt_id = names["attempt_id"]
        rows = sessions.attempts_of(user_id=self.user_id)
        found = rows.filter(pk=attempt_id).first() if _ATTEMPT_ID.match(attempt_id) else None
        if found is None:
            raise AttemptNotFound(attempt_id[:MAX_LENGTH])
        self.attempt = found


class OneAttempt(OfAttempt):
    @operation("One attempt with its facts in order")
    def get(self, *, attempt_id: str) -> HttpResponse:
        return answers.json(with_facts(self.attempt))


def with_facts(attempt: ProviderAttempt) -> shapes.Shape:
    return {**shapes.attempt_shape(attempt), "facts": shapes.attempt_facts(attempt)}
