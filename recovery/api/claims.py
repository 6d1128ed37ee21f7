"""Claims: each recovery of one loss of an owner."""

from typing import Final

from django.http import HttpResponse

from recovery.api import bodies
from recovery.models import RecoveryClaim
from recovery.shapes import claim_shape
from schema import views
from schema.problems import SessionNotFound
from sessions_app.api import answers, paging, problems
from sessions_app.api.endpoint import Endpoint, require_session
from sessions_app.api.operation import operation

NEWEST_FIRST: Final = paging.Order(name="claims", columns=("created_at", "id"), direction="desc")


class Claims(Endpoint):
    @operation(
        "Recoveries of own sessions, or of all (staff)",
        query=bodies.ClaimsQuery,
        answers={200: views.ClaimPage},
        refusals=(problems.StaffOnly, SessionNotFound),
    )
    def get(self, *, query: bodies.ClaimsQuery) -> HttpResponse:
        rows = RecoveryClaim.objects.all()
        if not query.all:
            rows = rows.filter(session__user_id=self.user_id)
            if query.session is not None:
                require_session(query.session, user_id=self.user_id)
        elif not self.request.user.is_staff:
            raise problems.StaffOnly
        if query.session is not None:
            rows = rows.filter(session_id=query.session)
        page = paging.cut(rows, order=NEWEST_FIRST, query=query)
        return answers.json(page.shape([claim_shape(row) for row in page.rows]))
