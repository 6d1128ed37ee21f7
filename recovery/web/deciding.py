"""Decisions by forms: each view calls one verb and shows the chat again, with what was refused."""

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

from recovery import decisions
from schema.problems import Problem
from schema.text import clean
from sessions_app import log, sessions
from sessions_app.web.headers import page

MAX_REASON_CHARACTERS: Final = 500
MAX_RESULT_CHARACTERS: Final = 32_000

signed_in = login_required(login_url="web:sign-in")


@page
@signed_in
@require_POST
def decide_attempt(request: HttpRequest, attempt_id: str) -> HttpResponse:
    """Abandon or retry. Sending the form twice decides once and tells the second who decided."""
    attempt = sessions.attempts_of(user_id=_user(request).pk).filter(pk=clean(attempt_id)).first()
    action = request.POST.get("action")
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
    """Approve or deny a waiting call, or say what became of an unknown one."""
    call = sessions.calls_of(user_id=_user(request).pk).filter(pk=clean(call_id)).first()
    action = request.POST.get("action")
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
