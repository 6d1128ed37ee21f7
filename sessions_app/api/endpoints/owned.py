"""What belongs to a user by way of a session: lists of it, and addresses inside one."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from django.db.models import Model
from django.http import HttpResponse

from schema.ids import MAX_LENGTH
from sessions_app.api import answers, bodies, paging
from sessions_app.api.endpoint import Endpoint, require_session
from sessions_app.sessions.shapes import Shape

if TYPE_CHECKING:
    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)


class Owned(Endpoint, Generic[M]):
    """All rows of one kind that are the user's, or those of one session of theirs."""

    order: ClassVar[paging.Order]

    def rows(self, session_id: str | None = None) -> "QuerySet[M]":
        raise NotImplementedError

    def needing(self, rows: "QuerySet[M]", wanted: bool) -> "QuerySet[M]":
        """Those of ``rows`` that need a decision, or all others."""
        raise NotImplementedError

    def listed(self, query: bodies.OwnedQuery, shaped: Callable[[Sequence[M]], list[Shape]]) -> HttpResponse:
        if query.session is not None:
            require_session(query.session, user_id=self.user_id)
        rows = self.rows(query.session)
        if query.state is not None:
            rows = rows.filter(state=query.state)
        if query.needs_decision is not None:
            rows = self.needing(rows, query.needs_decision)
        page = paging.cut(rows, order=self.order, query=query)
        return answers.json(page.shape(shaped(page.rows)))


class OneOwned(Owned[M]):
    """An address inside one of them. It is looked for before anything else of the request is."""

    name: ClassVar[str]
    pattern: ClassVar[re.Pattern[str]]
    row: M

    def find_resource(self, names: Mapping[str, str]) -> None:
        given = names[self.name]
        found = self.rows().filter(pk=given).first() if self.pattern.match(given) else None
        if found is None:
            raise self.missing[0](given[:MAX_LENGTH])
        self.row = found
