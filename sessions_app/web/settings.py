"""A person's own settings: the theme, the password, tokens for the API."""

from typing import Final, cast

from django.contrib import messages
from django.contrib.auth import forms, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from schema.text import clean
from sessions_app.access import tokens
from sessions_app.models import ApiToken
from sessions_app.web.headers import page

THEMES: Final = {"": "As the system", "light": "Light", "dark": "Dark"}
_COOKIE: Final = "theme"
_YEAR_SECONDS: Final = 365 * 24 * 3600
_MOST_NAME_CHARACTERS: Final = 100

signed_in = login_required(login_url="web:sign-in")


@page
@signed_in
@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    return _show(request)


def _show(
    request: HttpRequest,
    *,
    form: "forms.PasswordChangeForm | None" = None,
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    user = _user(request)
    shown = form or forms.PasswordChangeForm(user)
    # It is not what most people come for.
    shown.fields["old_password"].widget.attrs.pop("autofocus", None)
    context = {
        "form": shown,
        "secret": secret,
        "theme": request.COOKIES.get(_COOKIE, ""),
        "themes": THEMES.items(),
        "tokens": ApiToken.objects.filter(user_id=user.pk, revoked_at=None).order_by("-created_at"),
    }
    return render(request, "account/settings.html", context, status=status)


@page
@signed_in
@require_POST
def theme(request: HttpRequest) -> HttpResponseBase:
    """Kept by this browser."""
    chosen = request.POST.get("theme", "")
    response = redirect("web:settings")
    if chosen in THEMES:
        response.set_cookie(_COOKIE, chosen, max_age=_YEAR_SECONDS, samesite="Lax")
    return response


@page
@signed_in
@sensitive_post_parameters()
@require_POST
def password(request: HttpRequest) -> HttpResponseBase:
    """Other browsers of this person are signed out, this one stays."""
    form = forms.PasswordChangeForm(_user(request), request.POST)
    if not form.is_valid():
        return _show(request, form=form, status=422)
    update_session_auth_hash(request, form.save())
    messages.success(request, "The password is changed. Other browsers are signed out.")
    return redirect("web:settings")


@page
@signed_in
@require_POST
def create_token(request: HttpRequest) -> HttpResponse:
    """The answer shows the secret, this once."""
    name = clean(request.POST.get("name", "")).strip()[:_MOST_NAME_CHARACTERS]
    made = tokens.create_token(user_id=_user(request).pk, name=name, now=timezone.now())
    return _show(request, secret=made.secret)


@page
@signed_in
@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponseBase:
    """From now on the token lets nobody in. Another person's is not touched."""
    if ApiToken.objects.filter(pk=token_id, user_id=_user(request).pk).exists():
        tokens.revoke_token(token_id=token_id, now=timezone.now())
    return redirect("web:settings")


def _user(request: HttpRequest) -> User:
    return cast("User", request.user)
