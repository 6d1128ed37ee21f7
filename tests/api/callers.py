"""Who calls the API in tests: a person with a token, or somebody without one."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app import access
from tests.api import conforming
from tests.support import world

PROBLEM = "application/problem+json"
UNKNOWN_SESSION = "ses_0000000000000000"
UNKNOWN_PROMPT = "msg_0000000000000000"
UNKNOWN_ATTEMPT = "att_0000000000000000"


@dataclass(kw_only=True)
class Caller:
    """Calls below /api/v1; bodies are sent as JSON. Every answer must be one that the OpenAPI document has."""

    headers: dict[str, str] = field(default_factory=dict)
    user_id: int = 0
    client: Client = field(default_factory=Client)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        return self.send(method, path, data, **headers)

    def send(
        self, method: str, path: str, data: bytes, content_type: str = "application/json", **headers: str
    ) -> Any:
        address = f"/api/v1{path}"
        response = self.client.generic(method, address, data, content_type, headers=self.headers | headers)
        conforming.check(method, address, response)
        return response

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, body)

    def patch(self, path: str, body: Any = None) -> Any:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)


def with_token(name: str) -> Caller:
    """A new person with a token."""
    user_id = world.user(name)
    made = access.create_token(user_id=user_id, name="tests", now=timezone.now())
    return Caller(headers={"Authorization": f"Token {made.secret}"}, user_id=user_id)


def another_token(caller: Caller) -> Caller:
    """The same person with a second token."""
    made = access.create_token(user_id=caller.user_id, name="second", now=timezone.now())
    return Caller(headers={"Authorization": f"Token {made.secret}"}, user_id=caller.user_id)


def refused(response: Any, status: int, code: str) -> Any:
    """The problem document of a refusal that must be this one."""
    assert response.status_code == status, (response.status_code, response.content)
    assert response.headers["Content-Type"] == PROBLEM
    problem = response.json()
    assert problem["status"] == status
    assert problem["code"] == code, problem
    assert all(problem[name] for name in ("type", "title", "detail"))
    return problem


def pages_of(caller: Caller, path: str, *, limit: int) -> list[list[Any]]:
    """Every page of a list, from the first to the last."""
    found, cursor = [], ""
    joint = "&" if "?" in path else "?"
    while True:
        response = caller.get(f"{path}{joint}limit={limit}{cursor}")
        assert response.status_code == 200, response.content
        page = response.json()
        found.append(page["results"])
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def statements(act: Callable[[], Any]) -> int:
    """How many statements ``act`` sends, BEGIN and COMMIT included."""
    with CaptureQueriesContext(connection) as asked:
        act()
    return len(asked)
