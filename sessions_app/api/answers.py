"""Answers: what a verb returned, as JSON."""

import json as stdlib_json
from typing import Any, Final

from django.http import HttpResponse

JSON: Final = "application/json"


def json(shape: Any, *, status: int = 200, content_type: str = JSON) -> HttpResponse:
    """``shape`` as the body. It holds a user's own data, so that no cache may keep it."""
    body = stdlib_json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
    # A detail may quote what was sent, lone surrogates included.
    response = HttpResponse(body.encode("utf-8", "replace"), status=status, content_type=content_type)
    response["Cache-Control"] = "no-store"
    return response


def nothing() -> HttpResponse:
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response
