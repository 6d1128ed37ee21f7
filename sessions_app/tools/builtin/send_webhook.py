"""A message to a URL that the operator of this installation allows."""

import asyncio
import functools
import json
import ssl
from typing import Any, Final

import httpx2
from django.conf import settings
from pydantic import JsonValue

from sessions_app.tools.declare import bounded, tool
from sessions_app.tools.port import OutcomeUnknown, ToolContext

MAX_BYTES: Final = 256 * 1024
MAX_ANSWER_BYTES: Final = 4 * 1024
_TIMEOUT: Final = httpx2.Timeout(connect=10.0, read=30.0, write=30.0, pool=None)
_ANSWER_SECONDS: Final = 5.0

_FROM_A_GATEWAY: Final = frozenset({408, 502, 504})
"""Statuses of somebody in between, who does not know what became of the message."""


class NotSent(Exception):
    """Nothing left this machine; the text says why."""


class Refused(Exception):
    """The server answered, and did not accept the message."""


@tool(effect="side_effect", timeout_seconds=60)
async def send_webhook(url: str, payload: dict[str, JsonValue], context: ToolContext) -> str:
    """Send a JSON message to a webhook that this installation allows.

    The message is sent once, by POST; it is not repeated if it fails.

    Args:
        url: The URL of the webhook.
        payload: The JSON object to send.
    """
    if not is_allowed(url, settings.HOLDFAST_WEBHOOK_URLS):
        raise NotSent(f"This installation does not allow webhooks to {bounded(url, 200)}.")
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_BYTES:
        raise NotSent(f"The message is larger than {MAX_BYTES:,} bytes.")
    return await _post(url, body, key=context.idempotency_key)


def is_allowed(url: str, allowed: tuple[str, ...]) -> bool:
    """Whether the URL is one of those allowed, or lies below one that ends with a slash.

    What could be read in two ways is not allowed: escapes and dots in the path below, users, other hosts.
    """
    target = _parsed(url)
    return target is not None and any(_covers(pattern, target) for pattern in allowed)


def _parsed(url: str) -> httpx2.URL | None:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return None
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        return None
    return None if parsed.userinfo or parsed.fragment else parsed


def _covers(pattern: str, target: httpx2.URL) -> bool:
    allowed = httpx2.URL(pattern)
    if (allowed.scheme, allowed.host, allowed.port) != (target.scheme, target.host, target.port):
        return False
    wanted, given = allowed.raw_path.decode("ascii"), target.raw_path.decode("ascii")
    if wanted == given:
        return True
    if not wanted.endswith("/") or not given.startswith(wanted):
        return False
    below = given[len(wanted) - 1 :]
    return not any(sign in below for sign in ("..", "%", "//", "?", ";"))


async def _post(url: str, body: bytes, *, key: str) -> str:
    sending = _Sending()
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "User-Agent": "Holdfast send_webhook",
    }
    request = httpx2.Request(
        "POST",
        url,
        headers=headers,
        content=body,
        extensions={"trace": sending.trace, "timeout": _TIMEOUT.as_dict()},
    )
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits) as transport:
        try:
            response = await transport.handle_async_request(request)
        except httpx2.TransportError as error:
            raise sending.end(error) from None
        try:
            return _told(response.status_code, await _answer(response))
        finally:
            await response.aclose()


class _Sending:
    """Whether a byte of the request may have left."""

    def __init__(self) -> None:
        self._has_begun = False

    async def trace(self, event: str, _: Any) -> None:
        if event.endswith("send_request_headers.started"):
            self._has_begun = True

    def end(self, error: Exception) -> Exception:
        kind = type(error).__name__
        if self._has_begun:
            return OutcomeUnknown(f"the webhook gave no answer ({kind})")
        return NotSent(f"The server could not be reached, so nothing was sent ({kind}).")


async def _answer(response: httpx2.Response) -> str:
    """The beginning of what the server says; its status counts also when this breaks off."""
    body = b""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            async for chunk in response.aiter_raw():
                body += chunk[:MAX_ANSWER_BYTES]
                if len(body) >= MAX_ANSWER_BYTES:
                    break
    except (TimeoutError, httpx2.TransportError):
        pass
    return body[:MAX_ANSWER_BYTES].decode("utf-8", "replace").strip()


def _told(status: int, answer: str) -> str:
    """Raises Refused, or OutcomeUnknown when the status is that of somebody in between."""
    text = f"The webhook answered with status {status}." + (f"\n\n{answer}" if answer else "")
    if status in _FROM_A_GATEWAY:
        raise OutcomeUnknown(f"a gateway answered with status {status}")
    if not 200 <= status < 300:
        raise Refused(text)
    return text


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
