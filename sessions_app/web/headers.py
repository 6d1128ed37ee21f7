"""What every page tells the browser: load from here only, run nothing inline, keep no copy."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache

View = Callable[..., HttpResponseBase]

POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)


def page(view: View) -> View:
    """A view whose answers carry the Content-Security-Policy and are never cached."""

    @never_cache
    @wraps(view)
    def with_headers(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = POLICY
        return response

    return with_headers
