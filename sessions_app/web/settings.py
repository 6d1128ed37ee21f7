"""A person's own settings: how pages look, the password, tokens for the API."""

from collections.abc import Mapping
from dataclasses import dataclass
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
from sessions_app.web.changing import nowhere
from sessions_app.web.headers import page


@dataclass(frozen=True, kw_only=True)
class Look:
    """Something that a browser keeps in a cookie, and its choices; the first is the default, and empty."""

    name: str
    label: str
    choices: Mapping[str, str]


LOOKS: Final = (
    Look(name="theme", label="Theme", choices={"": "As the system", "light": "Light", "dark": "Dark"}),
    Look(name="density", label="Density", choices={"": "Comfortable", "compact": "Compact"}),
    Look(
        name="reasoning",
        label="Reasoning of the model",
        choices={"": "Folded to one line", "open": "Open while it is written"},
    ),
)
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
        "looks": [
            {"look": look, "choices": look.choices.items(), "chosen": request.COOKIES.get(look.name, "")}
            for look in LOOKS
        ],
        "tokens": ApiToken.objects.filter(user_id=user.pk, revoked_at=None).order_by("-created_at"),
    }
    return render(request, "account/settings.html", context, status=status)


@page
@signed_in
@require_POST
def looks(request: HttpRequest) -> HttpResponseBase:
    """Kept by this browser."""
    response = redirect("web:settings")
    for look in LOOKS:
        chosen = request.POST.get(look.name, "")
        if chosen in look.choices:
            response.set_cookie(look.name, chosen, max_age=_YEAR_SECONDS, samesite="Lax")
    messages.success(request, "Saved for this browser.")
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
    """From now on the token lets nobody in. Another person's is not there."""
    if not ApiToken.objects.filter(pk=token_id, user_id=_user(request).pk).exists():
        return nowhere(request)
    tokens.revoke_token(token_id=token_id, now=timezone.now())
    return redirect("web:settings")


def _user(request: HttpRequest) -> User:
    return cast("User", request.user)
