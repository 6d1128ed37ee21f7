"""Holds every answer of the API that a test gets against the OpenAPI document."""

import json
import re
from functools import cache
from typing import Any

import jsonschema_rs

from sessions_app.api import openapi

BASE = "/api/v1"


def check(method: str, path: str, response: Any) -> None:
    """The status is documented for this address, and so are the media type and the shape of the body.

    Addresses and methods that the document does not have are left alone: they are refused. So is a 500,
    which no answer should be.
    """
    described = operation(method, path.partition("?")[0])
    if described is None or response.status_code == 500:
        return
    where = f"{method} {path} answered {response.status_code}"
    answer = described["responses"].get(str(response.status_code))
    assert answer is not None, f"{where}, which is not documented"
    content = answer.get("content", {})
    if not content:
        assert response.content == b"", f"{where} with content, which is not documented"
        return
    kind = response.headers["Content-Type"]
    assert kind in content, f"{where} with {kind}, which is not documented"
    if kind.endswith("json") and not response.streaming:
        _validator(json.dumps(content[kind]["schema"])).validate(json.loads(response.content))


def operation(method: str, path: str) -> dict[str, Any] | None:
    """What the document says of this method of a whole path."""
    for pattern, methods in _addresses():
        if pattern.fullmatch(path):
            found: dict[str, Any] | None = methods.get(method.lower())
            return found
    return None


@cache
def _addresses() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    paths = openapi.document()["paths"]
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), methods) for path, methods in paths.items()]


@cache
def _validator(schema: str) -> Any:
    whole = json.loads(schema) | {"components": openapi.document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole)
