"""The pages of the chat. Each view makes one call and renders its result."""

import re
from typing import Any, Final, cast, get_args

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from schema.events import RecoveryPolicy
from schema.inputs import Delivery
from schema.limits import MAX_NAME_CHARACTERS
from schema.problems import Problem, SessionNotFound
from schema.text import clean
from sessions_app import identity, log, sessions
from sessions_app.models import Session
from sessions_app.web import first_run, pickers, snapshot, words
from sessions_app.web.headers import page

SUGGESTIONS: Final = (
    {
        "label": "How does a log survive a power cut?",
        "text": "How does a write-ahead log survive a power cut?",
    },
    {"label": "Plan a week of dinners", "text": "Plan a week of simple dinners for two."},
    {"label": "Count slowly (demo)", "text": "[[delay 80]] [[words 120]]"},
)
"""What a new chat offers; the last one shows off the scripted demo."""

_MOST_QUERY_CHARACTERS: Final = 200
_INDENTATION: Final = re.compile(r"\s*\n\s*")

signed_in = login_required(login_url="web:sign-in")


def _user_id(request: HttpRequest) -> int:
    return cast("User", request.user).pk


@page
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: HttpRequest) -> HttpResponseBase:
    """A new chat; before the first account exists, where to find the link that makes it."""
    if not request.user.is_authenticated and first_run.is_needed():
        return render(request, "account/no_account.html")
    return _start(request) if request.method == "POST" else _new_chat(request)


@signed_in
def _new_chat(request: HttpRequest, *, problem: str = "", text: str = "", status: int = 200) -> HttpResponse:
    chosen = _chosen(request)
    context = {
        "beside": _beside(request),
        "suggestions": SUGGESTIONS,
        "new_session_id": identity.new_session_id(),
        "chosen": chosen.items(),
        "pickers": pickers.pickers(chosen, with_models="models" in request.GET),
        **_composer(problem=problem, text=text),
    }
    return _render(request, "chat/new.html", context, status=status)


def _beside(request: HttpRequest) -> snapshot.Beside:
    return snapshot.beside(
        user_id=_user_id(request),
        cursor=request.GET.get("chats", ""),
        query=_query(request),
        now=timezone.now(),
    )


def _query(request: HttpRequest) -> str:
    return clean(request.GET.get("q", ""))[:_MOST_QUERY_CHARACTERS]


def _chosen(request: HttpRequest) -> pickers.Chosen:
    """What the address or the form says of a chat that does not exist yet."""
    given = request.POST if request.method == "POST" else request.GET
    policy = given.get("recovery_policy", "")
    return pickers.Chosen(
        agent=clean(given.get("agent", ""))[:MAX_NAME_CHARACTERS],
        model=clean(given.get("model", "")).strip()[:MAX_NAME_CHARACTERS],
        recovery_policy=policy if policy in get_args(RecoveryPolicy) else "",
    )


@page
@signed_in
@require_GET
def chats(request: HttpRequest) -> HttpResponse:
    """The list of chats by itself, for a page that has been open for a while."""
    context = {"beside": _beside(request), "current": request.GET.get("current", "")}
    return _render(request, "chat/_chats.html", context, status=200)


@signed_in
def _start(request: HttpRequest) -> HttpResponseBase:
    """Without scripts: create the session and send its first prompt. Sending the form twice does it once."""
    text = request.POST.get("text", "")
    chosen = _chosen(request)
    try:
        created = sessions.create(
            user_id=_user_id(request),
            session_id=request.POST.get("session") or None,
            title=words.title_of(text),
            agent=chosen.agent or None,
            model=chosen.model or None,
            recovery_policy=cast("RecoveryPolicy | None", chosen.recovery_policy or None),
            now=timezone.now(),
        )
        _admit(request, session_id=created.session.pk)
    except Problem as problem:
        return _new_chat(request, problem=problem.detail, text=text, status=problem.status)
    return redirect("web:chat", created.session.pk)


@page
@signed_in
@require_GET
def chat(request: HttpRequest, session_id: str) -> HttpResponse:
    return _chat(request, session_id)


@page
@signed_in
@require_POST
def send(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """Without scripts: send one prompt and show the page again."""
    try:
        sessions.get(user_id=_user_id(request), session_id=session_id)
        _admit(request, session_id=session_id)
    except (SessionNotFound, log.SessionGone):
        return _not_found(request)
    except Problem as problem:
        text = request.POST.get("text", "")
        return _chat(request, session_id, problem=problem.detail, text=text, status=problem.status)
    return redirect("web:chat", session_id)


def _admit(request: HttpRequest, *, session_id: str) -> None:
    delivery: Delivery = "queue" if request.POST.get("delivery") == "queue" else "steer"
    sessions.prompt(
        session_id=session_id,
        message_id=request.POST.get("message") or None,
        # A form sends line ends as CR LF.
        text=request.POST.get("text", "").replace("\r\n", "\n"),
        delivery=delivery,
        now=timezone.now(),
    )


def _chat(
    request: HttpRequest, session_id: str, *, problem: str = "", text: str = "", status: int = 200
) -> HttpResponse:
    editing = request.GET.get("edit", "")
    try:
        shown = snapshot.read(
            user_id=_user_id(request),
            session_id=session_id,
            before=_seq(request.GET.get("before", "")),
            cursor=request.GET.get("chats", ""),
            query=_query(request),
            now=timezone.now(),
        )
    except SessionNotFound:
        return _not_found(request)
    context = {
        "chat": shown,
        "beside": shown.beside,
        "current": shown.session.pk,
        "pickers": pickers.pickers(_chosen_by(shown.session), with_models="models" in request.GET),
        **_composer(problem=problem, text=text),
    }
    if editing and (earlier := shown.text_of(editing)):
        context |= {"editing": editing, "draft": earlier}
    return _render(request, "chat/chat.html", context, status=status)


def _chosen_by(session: Session) -> pickers.Chosen:
    return pickers.Chosen(agent=session.agent, model=session.model, recovery_policy=session.recovery_policy)


def _render(request: HttpRequest, template: str, context: dict[str, Any], *, status: int) -> HttpResponse:
    """Without the templates' indentation, half the size; texts whose spaces count go through ``exact``."""
    html = render_to_string(template, context, request)
    return HttpResponse(_INDENTATION.sub("\n", html), status=status)


def _composer(*, problem: str, text: str) -> dict[str, Any]:
    return {
        "new_message_id": identity.new_message_id(),
        "problem": problem,
        "draft": text,
        "words": words.tables(),
    }


def _seq(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _not_found(request: HttpRequest) -> HttpResponse:
    return render(request, "404.html", status=404)
