"""The API's way from ASGI to a response, where no server is needed to see it."""

import asyncio
import threading
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse

from sessions_app.api.asgi import ApiHandler
from tests.live.conftest import eventually


async def test_work_that_outlives_its_client_can_still_read_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be ended: it goes on with a request whose client has left."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b'{"text": ', "more_body": True},
        {"type": "http.request", "body": b'"Hello"}'},
        {"type": "http.disconnect"},
    ]
    has_left = threading.Event()
    seen: list[bytes] = []

    def read_late(request: HttpRequest) -> HttpResponse:
        assert has_left.wait(20)
        try:
            seen.append(request.read())
        except ValueError as error:
            seen.append(repr(error).encode())
        return HttpResponse()

    async def respond(request: HttpRequest) -> HttpResponse:
        return await asyncio.get_running_loop().run_in_executor(None, read_late, request)

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(f"nobody is there to be sent {message}")

    handler = ApiHandler()
    monkeypatch.setattr(handler, "get_response_async", respond)
    scope = {"type": "http", "method": "POST", "path": "/api/v1/me", "headers": [], "query_string": b""}

    await handler(scope, receive, send)
    has_left.set()

    await eventually(lambda: bool(seen), what="the thread that was left behind")
    assert seen == [b'{"text": "Hello"}']
