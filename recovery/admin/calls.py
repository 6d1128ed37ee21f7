"""Answering calls that wait for a person, and saying what became of unknown ones."""

from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from recovery import decisions
from recovery.admin import confirming
from sessions_app.admin.base import NOTHING, folded, link
from sessions_app.admin.transcript import MessagePartAdmin
from sessions_app.models import MessagePart

Chosen = QuerySet[MessagePart]

_HEAD: Final = ("Call", "Session", "Tool", "Effect", "Input", "Would repeat", "State", "Then")
_TITLES: Final[dict[decisions.CallAction, str]] = {
    "approve": "Approve waiting calls",
    "deny": "Deny waiting calls",
    "mark_done": "Mark unknown calls as done",
    "mark_not_done": "Mark unknown calls as not done",
}
_MEANINGS: Final[dict[decisions.CallAction, str]] = {
    "approve": "The tool is run with this input, now and once, and has its effect.",
    "deny": "The tool is not run. The model is told so, with the reason.",
    "mark_done": "The model is told that the call had its effect, and goes on when nothing else is unknown.",
    "mark_not_done": (
        "The model is told that the call had no effect, goes on when nothing else is unknown, and may ask "
        "for the call again."
    ),
}

admin.site.unregister(MessagePart)


@admin.register(MessagePart)
class DecidablePartAdmin(MessagePartAdmin):
    """The same list, with what a waiting or unknown call allows."""

    actions: Any = ("approve", "deny", "mark_done", "mark_not_done")

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sessions_app.change_messagepart")

    @admin.action(description="Approve: run the waiting call", permissions=["decide"])
    def approve(self, request: HttpRequest, chosen: Chosen) -> TemplateResponse | None:
        return self._decide(request, chosen, "approve")

    @admin.action(description="Deny: do not run the waiting call", permissions=["decide"])
    def deny(self, request: HttpRequest, chosen: Chosen) -> TemplateResponse | None:
        return self._decide(request, chosen, "deny")

    @admin.action(description="Mark done: the unknown call had its effect", permissions=["decide"])
    def mark_done(self, request: HttpRequest, chosen: Chosen) -> TemplateResponse | None:
        return self._decide(request, chosen, "mark_done")

    @admin.action(description="Mark not done: the unknown call had no effect", permissions=["decide"])
    def mark_not_done(self, request: HttpRequest, chosen: Chosen) -> TemplateResponse | None:
        return self._decide(request, chosen, "mark_not_done")

    def _decide(
        self, request: HttpRequest, chosen: Chosen, action: decisions.CallAction
    ) -> TemplateResponse | None:
        calls = confirming.chosen_rows(self, request, chosen.filter(kind="tool"), most=confirming.MOST)
        if calls and not confirming.is_confirmed(request):
            return confirming.render(self, request, _page(calls, action))
        by, reason = request.user.get_username(), confirming.reason(request)
        acts = ((call.pk, partial(_decide, call, action, by=by, reason=reason)) for call in calls)
        confirming.decide_each(self, request, acts, done=f"decided, {action}.")
        return None


def _decide(call: MessagePart, action: decisions.CallAction, *, by: str, reason: str | None) -> None:
    decisions.answer_or_mark(
        session_id=call.session_id,
        call_id=call.pk,
        action=action,
        by=by,
        reason=reason,
        now=timezone.now(),
    )


def _page(calls: list[MessagePart], action: decisions.CallAction) -> confirming.Page:
    return confirming.Page(
        action=action,
        title=_TITLES[action],
        meaning=_MEANINGS[action],
        head=_HEAD,
        rows={call.pk: _row(call, action) for call in calls},
        is_refused=all(_refused(call, action) for call in calls),
    )


def _row(call: MessagePart, action: decisions.CallAction) -> list[Any]:
    refused = _refused(call, action)
    return [
        link(call),
        call.session_id,
        call.name,
        call.effect or NOTHING,
        folded(call.input or call.raw_input or None),
        link(MessagePart(pk=call.earlier)) if call.earlier else NOTHING,
        "outcome unknown" if call.unknown_at is not None else call.approval or call.state,
        f"Refused. {refused}" if refused else "Will be decided",
    ]


def _refused(call: MessagePart, action: decisions.CallAction) -> str:
    """Why the decision will be refused; empty when it will be taken. The decision itself looks again."""
    if call.decision is not None:
        return f"Already decided: {call.decision['action']}, by {call.decision['by']}."
    if action in ("approve", "deny"):
        if call.approval != "waiting":
            return "It does not wait for an approval."
        return "Its step was stopped." if call.ended_at is not None else ""
    return "" if call.unknown_at is not None else "Its outcome is not unknown."
