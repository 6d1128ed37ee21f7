"""Who can get in by a secret. The secrets' digests are not shown either."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from sessions_app import access
from sessions_app.admin.base import ReadOnly
from sessions_app.models import ApiToken, SetupLink


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("id", "user", "name", "created_at", "revoked_at")
    list_select_related = ("user",)
    exclude = ("digest",)
    actions: Any = ("revoke",)
    identities = ("user__username",)
    search_help_text = "The whole username"

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sessions_app.change_apitoken")

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: "QuerySet[ApiToken]") -> None:
        now = timezone.now()
        revoked = sum(access.revoke_token(token_id=token.pk, now=now) for token in chosen)
        self.message_user(request, f"Revoked {revoked} tokens.", messages.SUCCESS)


@admin.register(SetupLink)
class SetupLinkAdmin(ReadOnly):
    list_display = ("id", "created_at", "used_at")
    exclude = ("digest",)
