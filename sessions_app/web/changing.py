"""Changing a chat by forms: rename, pin, archive, choose agent and model, say something else, delete."""

from datetime import datetime
from typing import Any, Final, Protocol, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from schema.problems import Problem, SessionNotFound
from schema.text import clean
from sessions_app import log, sessions
from sessions_app.models import Session
from sessions_app.sessions import revert
from sessions_app.web import pickers
from sessions_app.web.headers import page

_TRUTH: Final = {"true": True, "false": False}

signed_in = login_required(login_url="web:sign-in")


@page
@signed_in
@require_POST
def change(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """What the form names changes; the same form again changes nothing."""
    try:
        _own(request, session_id)
        sessions.update(session_id=session_id, now=timezone.now(), **_changes(request))
    except (SessionNotFound, log.SessionGone):
        return nowhere(request)
    except Problem as refused:
        messages.warning(request, refused.detail)
    return _back(request, session_id)


def _back(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """To the chat, with the list of chats as it was narrowed down."""
    address = reverse("web:chat", args=[session_id])
    query = clean(request.GET.get("q", ""))
    return redirect(f"{address}?{urlencode({'q': query})}" if query else address)


def _changes(request: HttpRequest) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in ("title", "agent", "model"):
        if text := clean(request.POST.get(name, "")).strip():
            given[name] = text
    policy = request.POST.get("recovery_policy")
    if policy in pickers.POLICIES:
        given["recovery_policy"] = "" if policy == pickers.BY_DEFAULT else policy
    for name in ("pinned", "archived"):
        if (said := request.POST.get(name)) in _TRUTH:
            given[name] = _TRUTH[said]
    return given


@page
@signed_in
@require_POST
def resend(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """Another text, or the same again, in place of an earlier message and of all that followed it."""
    try:
        session = _own(request, session_id)
        replaced = clean(request.POST.get("replaces", ""))
        sessions.edit_and_resend(
            session_id=session_id,
            message_id=replaced,
            text=_text(request, session, replaced),
            new_message_id=request.POST.get("message") or None,
            now=timezone.now(),
        )
    except (SessionNotFound, log.SessionGone):
        return nowhere(request)
    except Problem as refused:
        messages.warning(request, refused.detail)
    return _back(request, session_id)


@page
@signed_in
@require_POST
def keep(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """Nothing is hidden by the next message after all."""
    return _do(request, session_id, revert.clear)


@page
@signed_in
@require_POST
def resume(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """Go on: with what was paused, or with an answer that was stopped."""
    return _do(request, session_id, sessions.resume)


class _Verb(Protocol):
    def __call__(self, *, session_id: str, now: datetime) -> object: ...


def _do(request: HttpRequest, session_id: str, verb: _Verb) -> HttpResponseBase:
    try:
        _own(request, session_id)
        verb(session_id=session_id, now=timezone.now())
    except (SessionNotFound, log.SessionGone):
        return nowhere(request)
    except Problem as refused:
        messages.warning(request, refused.detail)
    return _back(request, session_id)


def _text(request: HttpRequest, session: Session, replaced: str) -> str:
    """What the form says; without a text, what the message said."""
    if "text" in request.POST:
        return request.POST["text"].replace("\r\n", "\n")
    return text_of(session, replaced)


def text_of(session: Session, message_id: str) -> str:
    """The text of a visible message of the user; empty for any other."""
    rows = sessions.messages_of(session).prefetch_related(None).filter(pk=message_id, type="user")
    return rows.values_list("text", flat=True).first() or ""


@page
@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """Ask, then delete for good. The page's scripts hold it back for a moment instead of asking."""
    try:
        session = _own(request, session_id)
        if request.method != "POST":
            return render(
                request,
                "chat/delete.html",
                {"session": session, "is_running": session.owner_id is not None},
            )
        sessions.delete(session_id=session_id, now=timezone.now())
    except (SessionNotFound, log.SessionGone):
        return nowhere(request)
    return redirect("web:home")


def _own(request: HttpRequest, session_id: str) -> Session:
    return sessions.get(user_id=cast("User", request.user).pk, session_id=session_id)


def nowhere(request: HttpRequest) -> HttpResponse:
    return render(request, "404.html", status=404)
