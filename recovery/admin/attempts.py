"""Deciding on unknown attempts, and asking their providers."""

from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from recovery import consequences, decisions, inquiries
from recovery.admin import confirming
from sessions_app.admin.attempts import ProviderAttemptAdmin
from sessions_app.admin.base import NOTHING, link, list_link
from sessions_app.models import ProviderAttempt

Chosen = QuerySet[ProviderAttempt]

MOST_ASKED: Final = 20
"""Each may take a call over the network, while the page waits."""

_SHOWN: Final = 200
_HEAD: Final = (
    *("Attempt", "Session", "Model", "Unknown since", "Received"),
    *("Effects outside", "Billed", "Then"),
)
_TITLES: Final[dict[decisions.AttemptAction, str]] = {
    "abandon": "Abandon unknown attempts",
    "retry": "Retry unknown attempts",
}
_MEANINGS: Final[dict[decisions.AttemptAction, str]] = {
    "abandon": "The outcome stays unknown. Nothing is sent; prompts that waited behind it may go.",
    "retry": (
        "The unknown request is never sent again: a new one follows, whose model is told. It costs what a "
        "request costs, and the model may call tools again."
    ),
}

admin.site.unregister(ProviderAttempt)


@admin.register(ProviderAttempt)
class DecidableAttemptAdmin(ProviderAttemptAdmin):
    """The same list, with what an unknown outcome allows."""

    actions: Any = ("abandon", "retry", "ask")
    readonly_fields = (*ProviderAttemptAdmin.readonly_fields, "deciding")

    @admin.display(description="decide")
    def deciding(self, row: ProviderAttempt) -> SafeString | str:
        """Acts belong to the list: the one that holds just this attempt."""
        if row.state != "unknown" or row.decision is not None:
            return NOTHING
        return list_link(ProviderAttempt, "Abandon, retry or ask", q=row.pk)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sessions_app.change_providerattempt")

    @admin.action(description="Abandon: the outcome stays unknown", permissions=["decide"])
    def abandon(self, request: HttpRequest, chosen: Chosen) -> TemplateResponse | None:
        return self._decide(request, chosen, "abandon")

    @admin.action(description="Retry: a new attempt follows", permissions=["decide"])
    def retry(self, request: HttpRequest, chosen: Chosen) -> TemplateResponse | None:
        return self._decide(request, chosen, "retry")

    @admin.action(description="Ask the provider: only a conclusive answer settles", permissions=["decide"])
    def ask(self, request: HttpRequest, chosen: Chosen) -> None:
        """An inquiry is no decision: it needs no second page and can be repeated."""
        attempts = confirming.chosen_rows(self, request, chosen, most=MOST_ASKED)
        acts = ((attempt.pk, partial(_ask, attempt)) for attempt in attempts)
        confirming.decide_each(self, request, acts, done="its provider is asked.")

    def _decide(
        self, request: HttpRequest, chosen: Chosen, action: decisions.AttemptAction
    ) -> TemplateResponse | None:
        attempts = confirming.chosen_rows(
            self, request, chosen.select_related("message"), most=confirming.MOST
        )
        if attempts and not confirming.is_confirmed(request):
            return confirming.render(self, request, _page(attempts, action))
        by, reason = request.user.get_username(), confirming.reason(request)
        acts = ((attempt.pk, partial(_decide, attempt, action, by=by, reason=reason)) for attempt in attempts)
        confirming.decide_each(self, request, acts, done=f"decided, {action}.")
        return None


def _decide(
    attempt: ProviderAttempt, action: decisions.AttemptAction, *, by: str, reason: str | None
) -> None:
    decisions.decide_attempt(
        session_id=attempt.session_id,
        attempt_id=attempt.pk,
        action=action,
        by=by,
        reason=reason,
        now=timezone.now(),
    )


def _ask(attempt: ProviderAttempt) -> None:
    inquiries.ask_about_attempt(session_id=attempt.session_id, attempt_id=attempt.pk, now=timezone.now())


def _page(attempts: list[ProviderAttempt], action: decisions.AttemptAction) -> confirming.Page:
    foreseen = consequences.foresee(attempts, action)
    return confirming.Page(
        action=action,
        title=_TITLES[action],
        meaning=_MEANINGS[action],
        head=_HEAD,
        rows={each.attempt.pk: _row(each) for each in foreseen},
        is_refused=all(each.refused for each in foreseen),
    )


def _row(each: consequences.Consequence) -> list[Any]:
    attempt = each.attempt
    effects = [*each.effects, *(["tools of the provider were offered"] if attempt.hosted_tools else [])]
    return [
        link(attempt),
        attempt.session_id,
        f"{attempt.provider}:{attempt.model}",
        attempt.unknown_at or NOTHING,
        each.received[:_SHOWN] or NOTHING,
        ", ".join(effects) or "none known",
        "may have been billed" if attempt.may_be_billed else "not billed",
        f"Refused. {each.refused}" if each.refused else "Will be decided",
    ]
