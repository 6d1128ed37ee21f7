"""Signing in and out, and the page behind the first-run link."""

from typing import Any

from django.contrib.auth import forms, login, views
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from sessions_app.web import first_run
from sessions_app.web.headers import page

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
    login(request, user)
    return redirect("web:home")


def _refused(request: HttpRequest, state: first_run.LinkState) -> HttpResponse:
    context = {"state": state, "is_needed": first_run.is_needed()}
    return render(request, "account/link_refused.html", context, status=_REFUSED_STATUS[state])
