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


def attachment(content: bytes, *, kind: str, name: str) -> HttpResponse:
    """A file to keep; whatever it holds, no browser shows it in the place of a page."""
    response = HttpResponse(content, content_type=kind)
    for header, value in attachment_headers(name).items():
        response[header] = value
    return response


def attachment_headers(name: str) -> dict[str, str]:
    """``name`` is made of letters, digits, dots and dashes."""
    return {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }


def nothing() -> HttpResponse:
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response
