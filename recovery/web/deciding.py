"""Decisions and inquiries by forms: each view calls one verb and shows the chat again, with what was refused."""

from collections.abc import Callable
from typing import Final, cast, get_args

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from recovery import decisions, inquiries
from schema.problems import Problem
from schema.text import clean
from sessions_app import log, sessions
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.web import cards
from sessions_app.web.headers import page

ASK: Final = "ask"
"""A button beside the decisions. It decides nothing."""
MAX_REASON_CHARACTERS: Final = 500
MAX_RESULT_CHARACTERS: Final = 32_000

signed_in = login_required(login_url="web:sign-in")


@page
@signed_in
@require_POST
def decide_attempt(request: HttpRequest, attempt_id: str) -> HttpResponse:
    """Abandon or retry, or have the provider asked. Sending the form twice decides once and tells the second who decided."""
    attempt = sessions.attempts_of(user_id=_user(request).pk).filter(pk=clean(attempt_id)).first()
    action = request.POST.get("action")
    if attempt is not None and action == ASK:
        return _ask(
            request,
            attempt,
            ask=lambda: inquiries.ask_about_attempt(
                session_id=attempt.session_id, attempt_id=attempt_id, now=timezone.now()
            ),
        )
    if attempt is None or action not in get_args(decisions.AttemptAction):
        return _nowhere(request)
    return _decide(
        request,
        attempt.session_id,
        anchor=attempt_id,
        decide=lambda: decisions.decide_attempt(
            session_id=attempt.session_id,
            attempt_id=attempt_id,
            action=cast("decisions.AttemptAction", action),
            by=_user(request).get_username(),
            reason=_reason(request),
            now=timezone.now(),
        ),
    )


@page
@signed_in
@require_POST
def decide_call(request: HttpRequest, call_id: str) -> HttpResponse:
    """Approve or deny a waiting call, say what became of an unknown one, or have its tool asked."""
    call = sessions.calls_of(user_id=_user(request).pk).filter(pk=clean(call_id)).first()
    action = request.POST.get("action")
    if call is not None and action == ASK:
        return _ask(
            request,
            call,
            ask=lambda: inquiries.ask_about_call(
                session_id=call.session_id, call_id=call_id, now=timezone.now()
            ),
        )
    if call is None or action not in get_args(decisions.CallAction):
        return _nowhere(request)
    given = clean(request.POST.get("result", "")).strip()[:MAX_RESULT_CHARACTERS]
    return _decide(
        request,
        call.session_id,
        anchor=call_id,
        decide=lambda: decisions.answer_or_mark(
            session_id=call.session_id,
            call_id=call_id,
            action=cast("decisions.CallAction", action),
            by=_user(request).get_username(),
            reason=_reason(request),
            # The form has the field for all its buttons.
            result=(given or None) if action == "mark_done" else None,
            now=timezone.now(),
        ),
    )


def _ask(
    request: HttpRequest, unknown: ProviderAttempt | MessagePart, *, ask: Callable[[], None]
) -> HttpResponse:
    def ask_and_tell() -> None:
        ask()
        unknown.refresh_from_db()
        if unknown.decision is None and unknown.state in ("unknown", "error"):
            messages.info(request, cards.ASKED)

    return _decide(request, unknown.session_id, anchor=unknown.pk, decide=ask_and_tell)


def _decide(
    request: HttpRequest, session_id: str, *, anchor: str, decide: Callable[[], object]
) -> HttpResponse:
    try:
        decide()
    except log.SessionGone:
        return _nowhere(request)
    except Problem as refused:
        messages.warning(request, refused.detail)
    return redirect(f"{reverse('web:chat', args=[session_id])}#{anchor}")


def _user(request: HttpRequest) -> User:
    return cast("User", request.user)


def _reason(request: HttpRequest) -> str | None:
    return clean(request.POST.get("reason", "")).strip()[:MAX_REASON_CHARACTERS] or None


def _nowhere(request: HttpRequest) -> HttpResponse:
    return render(request, "404.html", status=404)
