"""Who asks: a token, or the web session together with CSRF."""

from typing import Any, Final

from django.contrib.auth.models import User
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from sessions_app import access

_SCHEME: Final = "token"


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Token ...``. A token that does not fit is refused, whatever else was sent.

    The request's ``auth`` is the token's id.
    """

    def authenticate(self, request: Request) -> tuple[User, int] | None:
        scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
        if scheme.lower() != _SCHEME:
            return None
        bearer = access.find_bearer(secret.strip())
        if bearer is None:
            raise exceptions.AuthenticationFailed(
                "The token is not valid, was revoked, or its user is inactive."
            )
        return bearer.user, bearer.token_id

    def authenticate_header(self, request: Request) -> str:
        return 'Token realm="holdfast"'


class WebSession(SessionAuthentication):
    """The session of somebody who signed in on the web page."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        if "HTTP_AUTHORIZATION" in request.META:
            return None
        found: tuple[Any, None] | None = super().authenticate(request)
        return found
