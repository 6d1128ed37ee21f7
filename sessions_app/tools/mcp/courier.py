"""Carries the messages of a Streamable HTTP session: one connection a message, nothing sent twice.

What goes wrong is answered as a JSON-RPC error. An exception would end the client's session and make every
other call in it unknown; and only here is it known whether a message can have left.
"""

import json
from collections.abc import Callable
from typing import Any, Final

import httpx2

NOT_SENT: Final = -31001
"""The code of our answer when no message can have left."""
UNANSWERED: Final = -31002
"""The code of our answer when a message may have arrived and nothing tells what came of it."""
REFUSED: Final = -31003
"""The code of our answer for an HTTP status with which a server declines to look at a message."""

MAX_RESULT_BYTES: Final = 16 * 1024 * 1024
_TIMEOUT: Final = httpx2.Timeout(connect=10.0, write=30.0, read=None, pool=None)
_UNDECIDED_STATUS: Final = frozenset({202, 303, 408})


def client(
    *, headers: dict[str, str], is_up: Callable[[], bool], on_trouble: Callable[[], None]
) -> httpx2.AsyncClient:
    """The HTTP client of one session. ``on_trouble`` is told when the session may be over."""
    return httpx2.AsyncClient(
        transport=Courier(_transport(), is_up=is_up, on_trouble=on_trouble),
        headers=headers,
        timeout=_TIMEOUT,
        max_redirects=0,  # a redirect would send a call again
        trust_env=False,
    )


def _transport() -> httpx2.AsyncHTTPTransport:
    # A kept connection that the server closed meanwhile fails after the message may have left.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx2.AsyncHTTPTransport(trust_env=False, limits=limits)


class Courier(httpx2.AsyncBaseTransport):
    """Sends each request once and turns what proves nothing into an answer that says so."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, *, is_up: Callable[[], bool], on_trouble: Callable[[], None]
    ) -> None:
        self._inner = inner
        self._is_up = is_up
        self._on_trouble = on_trouble

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        sending = _Sending()
        request.extensions = {**request.extensions, "trace": sending.trace}
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            if not self._is_up():
                raise  # an answer would be taken for that of a server which speaks an older version
            kind = type(error).__name__
            if sending.has_begun:
                return self._trouble(UNANSWERED, f"the connection broke off ({kind})")
            return self._trouble(NOT_SENT, f"the server could not be reached ({kind})")
        return await self._answer(request, response)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _answer(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 404:
            self._on_trouble()  # a server that was started again does not know the session
        if response.status_code == 200 and kind == "text/event-stream":
            return response
        if not _expects_answer(request) and response.status_code < 400:
            return response
        try:
            body = await _body(response)
        except httpx2.TransportError as error:
            return self._trouble(UNANSWERED, f"the answer broke off ({type(error).__name__})")
        finally:
            await response.aclose()
        if body is None:
            return self._trouble(UNANSWERED, f"the answer is larger than {MAX_RESULT_BYTES:,} bytes")
        if kind == "application/json" and _is_answer(body, status=response.status_code):
            return _whole(response, body)
        return self._status(response.status_code)

    def _status(self, status: int) -> httpx2.Response:
        """The HTTP status is all there is."""
        if status in _UNDECIDED_STATUS or status >= 500 or status < 300:
            return self._trouble(UNANSWERED, f"the server answered with HTTP status {status} and no result")
        return self._trouble(REFUSED, f"the server refused the message with HTTP status {status}")

    def _trouble(self, code: int, message: str) -> httpx2.Response:
        self._on_trouble()
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
        return httpx2.Response(503, json=error)


class _Sending:
    """Whether a byte of the request may have left."""

    def __init__(self) -> None:
        self.has_begun = False

    async def trace(self, event: str, _: Any) -> None:
        if event.endswith("send_request_headers.started"):
            self.has_begun = True


def _expects_answer(request: httpx2.Request) -> bool:
    message = _parsed(request.content)
    return isinstance(message, dict) and "id" in message and "method" in message


async def _body(response: httpx2.Response) -> bytes | None:
    """The whole body; None when it is larger than we read."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_RESULT_BYTES:
            return None
    return bytes(body)


def _is_answer(body: bytes, *, status: int) -> bool:
    message = _parsed(body)
    if not isinstance(message, dict):
        return False
    return isinstance(message.get("error"), dict) or (status == 200 and "result" in message)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _whole(response: httpx2.Response, body: bytes) -> httpx2.Response:
    headers = {
        name: value
        for name, value in response.headers.items()
        if name.lower() not in ("content-length", "content-encoding", "transfer-encoding")
    }
    return httpx2.Response(response.status_code, headers=headers, content=body)
