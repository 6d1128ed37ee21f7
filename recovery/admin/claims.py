"""Claims: what each recovery found and did."""

from django.contrib import admin
from django.utils.safestring import SafeString

from recovery.models import RecoveryClaim
from sessions_app.admin import pages
from sessions_app.admin.base import NOTHING, folded, link
from sessions_app.admin.transcript import OfSession
from sessions_app.models import SessionInput, Worker


@admin.register(RecoveryClaim)
class RecoveryClaimAdmin(OfSession):
    list_display = (
        *("id", "of_session", "outcome", "death", "of_lost_owner", "of_worker"),
        *("attempts", "tools", "parts", "of_continuation", "created_at"),
    )
    list_filter = (
        pages.words("outcome", "continued", "resumed", "held", "parked", "closed"),
        pages.words("death", "proved", "assumed", "own", "none"),
    )
    position = "boundary_seq"
    fields = (
        *("id", "of_session", "boundary_seq", "lost_fence", "of_lost_owner", "death", "of_worker"),
        *("outcome", "shown_found", "of_continuation", "created_at"),
    )
    readonly_fields = ("of_session", "of_lost_owner", "of_worker", "shown_found", "of_continuation")

    @admin.display(description="lost owner")
    def of_lost_owner(self, claim: RecoveryClaim) -> SafeString | str:
        return link(Worker(pk=claim.lost_owner)) if claim.lost_owner else NOTHING

    @admin.display(description="recovered by")
    def of_worker(self, claim: RecoveryClaim) -> SafeString | str:
        return link(Worker(pk=claim.worker)) if claim.worker else NOTHING

    @admin.display(description="continuation")
    def of_continuation(self, claim: RecoveryClaim) -> SafeString | str:
        return link(SessionInput(pk=claim.continuation)) if claim.continuation else NOTHING

    @admin.display(description="found")
    def shown_found(self, claim: RecoveryClaim) -> SafeString | str:
        return folded(claim.found)

    @admin.display(description="attempts")
    def attempts(self, claim: RecoveryClaim) -> int:
        return int(claim.found.get("attempts", 0))

    @admin.display(description="tools")
    def tools(self, claim: RecoveryClaim) -> int:
        return int(claim.found.get("tools", 0))

    @admin.display(description="parts")
    def parts(self, claim: RecoveryClaim) -> int:
        return int(claim.found.get("parts", 0))
