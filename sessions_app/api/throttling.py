"""Every request counts for its user, and for its token if it came with one; the answer's headers say where they stand."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from sessions_app.access import rates
from sessions_app.access.rates import Standing


class PerUser(BaseThrottle):
    def allow_request(self, request: Request, view: Any) -> bool:
        assert request.user.pk is not None
        return _note(view, rates.spend_as_user(request.user.pk))


class PerToken(BaseThrottle):
    def allow_request(self, request: Request, view: Any) -> bool:
        return not isinstance(request.auth, int) or _note(view, rates.spend_as_token(request.auth))


def _note(view: Any, standing: Standing | None) -> bool:
    """Raises Throttled. Of two limits the headers tell of the one that is nearer."""
    if standing is None:
        return True
    if view.standing is None or standing.remaining < view.standing.remaining:
        view.standing = standing
    standing.require()
    return True


def tell(response: HttpResponseBase, standing: Standing | None) -> None:
    """The headers of draft-ietf-httpapi-ratelimit-headers-03, which clients know best."""
    if standing is None:
        return
    response["RateLimit-Limit"] = str(standing.allowed)
    response["RateLimit-Remaining"] = str(standing.remaining)
    response["RateLimit-Reset"] = str(standing.resets_in)
    if standing.is_exhausted:
        response["Retry-After"] = str(standing.resets_in)
