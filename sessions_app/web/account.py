"""Signing in and out, and the page behind the first-run link."""

import logging
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib.auth import forms, login, views
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from sessions_app import figures
from sessions_app.web import first_run
from sessions_app.web.headers import POLICY, page

logger = logging.getLogger(__name__)

_REFUSED_STATUS: dict[first_run.LinkState, int] = {"used": 410, "closed": 410, "unknown": 404}


class SignIn(views.LoginView):
    template_name = "account/sign_in.html"
    next_page = "web:home"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Before the first account exists there is nothing to sign in to; the home page says what to do."""
        if not request.user.is_authenticated and first_run.is_needed():
            return redirect("web:home")
        return super().dispatch(request, *args, **kwargs)


def too_many_failures(request: HttpRequest, *_: Any) -> HttpResponse:
    """The answer to a name that was tried too often from one address, here and in the admin."""
    figures.count(figures.THROTTLED, "sign_in")
    logger.warning("account.sign_in_paused", extra={"address": address_of(request)})
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    context = {"minutes": ceil(seconds / 60), "next": request.POST.get("next", "")}
    answer = render(request, "account/too_many_failures.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    answer["Content-Security-Policy"] = POLICY
    answer["Cache-Control"] = "no-store"
    return answer


def address_of(request: HttpRequest) -> str:
    """The client's address; behind proxies, what ours saw."""
    return str(request.META.get("REMOTE_ADDR") or "")


sign_in = page(SignIn.as_view())
sign_out = page(views.LogoutView.as_view(next_page="web:sign-in"))


@page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def first_account(request: HttpRequest, token: str) -> HttpResponseBase:
    """Create the administrator and sign in, or say why this link cannot do it."""
    state = first_run.look(token)
    if state != "open":
        return _refused(request, state)
    form: forms.UserCreationForm[User] = forms.UserCreationForm(request.POST or None)
    if not form.is_valid():
        return render(request, "account/first_account.html", {"form": form})
    user = form.save(commit=False)
    try:
        first_run.create_administrator(token=token, user=user, now=timezone.now())
    except first_run.LinkRefused as refused:
        return _refused(request, refused.state)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("web:home")


def _refused(request: HttpRequest, state: first_run.LinkState) -> HttpResponse:
    context = {"state": state, "is_needed": first_run.is_needed()}
    return render(request, "account/link_refused.html", context, status=_REFUSED_STATUS[state])
