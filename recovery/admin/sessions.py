"""Recoveries where people look for them: at their session, on the index, behind their id."""

from typing import Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from recovery.models import RecoveryClaim
from sessions_app.admin import finding, overview, timeline
from sessions_app.admin.base import link, list_link, table
from sessions_app.admin.sessions import SessionAdmin
from sessions_app.models import Session

SHOWN: Final = 5

admin.site.unregister(Session)


@admin.register(Session)
class RecoverableSessionAdmin(SessionAdmin):
    def links(self, session: Session) -> list[SafeString]:
        return [*super().links(session), list_link(RecoveryClaim, "Recoveries", session=session.pk)]


def recoveries(request: HttpRequest) -> overview.Section | None:
    """What the last ones found and did."""
    if not request.user.has_perm("recovery.view_recoveryclaim"):
        return None
    rows = [
        [link(claim), link(Session(pk=claim.session_id)), claim.outcome, claim.death, claim.created_at]
        for claim in RecoveryClaim.objects.order_by("-created_at", "-id")[:SHOWN]
    ]
    head = ("recovery", "session", "outcome", "death", "at")
    return overview.Section(
        title="Latest recoveries",
        shown=table(head, rows) if rows else "None so far.",
        more=list_link(RecoveryClaim, "All recoveries"),
    )


overview.SECTIONS.append(recoveries)
timeline.CONCERNED["claim"] = RecoveryClaim
finding.BY_PREFIX["clm"] = RecoveryClaim
