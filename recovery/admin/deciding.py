"""Deciding on unknown attempts, one by one or many at once, after a page that lists the consequences."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from recovery import consequences, decisions, inquiries
from schema.problems import Problem
from schema.text import clean
from sessions_app import log
from sessions_app.admin.attempts import ProviderAttemptAdmin
from sessions_app.admin.base import NOTHING, link, list_link, table
from sessions_app.models import ProviderAttempt

MAX_REASON_CHARACTERS: Final = 500
MOST: Final = 200
"""Attempts of one page of consequences: what nobody reads, nobody decides."""

MOST_ASKED: Final = 20
"""Each may take a call over the network, while the page waits."""

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
    def abandon(self, request: HttpRequest, chosen: "QuerySet[ProviderAttempt]") -> TemplateResponse | None:
        return self._decide(request, chosen, "abandon")

    @admin.action(description="Retry: a new attempt follows", permissions=["decide"])
    def retry(self, request: HttpRequest, chosen: "QuerySet[ProviderAttempt]") -> TemplateResponse | None:
        return self._decide(request, chosen, "retry")

    @admin.action(description="Ask the provider: only a conclusive answer settles", permissions=["decide"])
    def ask(self, request: HttpRequest, chosen: "QuerySet[ProviderAttempt]") -> None:
        """An inquiry is no decision: it needs no second page and can be repeated."""
        attempts = list(chosen.order_by("pk")[: MOST_ASKED + 1])
        if len(attempts) > MOST_ASKED:
            self.message_user(request, f"Ask about at most {MOST_ASKED} attempts at a time.", messages.ERROR)
            return
        for attempt in attempts:
            self._tell(request, attempt, partial(_ask, attempt), done="its provider is asked.")

    def _decide(
        self, request: HttpRequest, chosen: "QuerySet[ProviderAttempt]", action: decisions.AttemptAction
    ) -> TemplateResponse | None:
        attempts = list(chosen.select_related("message").order_by("pk")[: MOST + 1])
        if len(attempts) > MOST:
            self.message_user(request, f"Choose at most {MOST} attempts at a time.", messages.ERROR)
            return None
        if "confirmed" not in request.POST:
            return self._ask(request, attempts, action)
        reason = clean(request.POST.get("reason", "")).strip()[:MAX_REASON_CHARACTERS]
        by = request.user.get_username()
        for attempt in attempts:
            decide = partial(_decide, attempt, action, by=by, reason=reason or None)
            self._tell(request, attempt, decide, done=f"decided, {action}.")
        return None

    def _ask(
        self, request: HttpRequest, attempts: list[ProviderAttempt], action: decisions.AttemptAction
    ) -> TemplateResponse:
        foreseen = consequences.foresee(attempts, action)
        context = {
            **self.admin_site.each_context(request),
            "title": _TITLES[action],
            "meaning": _MEANINGS[action],
            "opts": self.opts,
            "action": action,
            "chosen": [attempt.pk for attempt in attempts],
            "checkbox": ACTION_CHECKBOX_NAME,
            "foreseen": _shown(foreseen),
            "is_refused": all(each.refused for each in foreseen),
            "longest_reason": MAX_REASON_CHARACTERS,
        }
        return TemplateResponse(request, "admin/recovery/decide.html", context)

    def _tell(
        self, request: HttpRequest, attempt: ProviderAttempt, act: Callable[[], object], *, done: str
    ) -> None:
        """Act on one attempt and say what came of it; a refusal does not stop the others."""
        try:
            act()
        except (Problem, log.SessionGone) as refused:
            self.message_user(request, f"{attempt.pk}: {refused}", messages.WARNING)
        else:
            self.message_user(request, f"{attempt.pk}: {done}", messages.SUCCESS)


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


def _shown(foreseen: list[consequences.Consequence]) -> SafeString:
    head = ("Attempt", "Session", "Model", "Unknown since", "Received", "Effects outside", "Billed", "Then")
    return table(head, (_row(each) for each in foreseen))


def _row(each: consequences.Consequence) -> list[Any]:
    attempt = each.attempt
    effects = [*each.effects, *(["tools of the provider were offered"] if attempt.hosted_tools else [])]
    return [
        link(attempt),
        attempt.session_id,
        f"{attempt.provider}:{attempt.model}",
        attempt.unknown_at or NOTHING,
        each.received[:200] or NOTHING,
        ", ".join(effects) or "none known",
        "may have been billed" if attempt.may_be_billed else "not billed",
        f"Refused. {each.refused}" if each.refused else "Will be decided",
    ]
