"""Who really asks, when proxies of ours stand in front: what they say of the client is believed, and nothing else is."""

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Forwarded:
    """Wraps an ASGI application. Each of ``proxies`` proxies added one address to X-Forwarded-For, so that the
    first of those was seen by a proxy of ours; what stands before it, anybody may have written."""

    def __init__(self, application: Application, *, proxies: int) -> None:
        self._application = application
        self._proxies = proxies

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._proxies and scope["type"] in ("http", "websocket"):
            scope = {**scope, **self._told(scope)}
        await self._application(scope, receive, send)

    def _told(self, scope: Any) -> dict[str, Any]:
        told: dict[str, Any] = {}
        addresses = _listed(scope, b"x-forwarded-for")
        if len(addresses) >= self._proxies:
            told["client"] = [addresses[-self._proxies], 0]
        schemes = _listed(scope, b"x-forwarded-proto")
        if schemes and schemes[-1] in ("http", "https"):
            is_web = scope["type"] == "http"
            told["scheme"] = schemes[-1] if is_web else {"http": "ws", "https": "wss"}[schemes[-1]]
        return told


def _listed(scope: Any, name: bytes) -> list[str]:
    """The items of a header, which may come several times."""
    values = [value.decode("latin1") for given, value in scope["headers"] if given == name]
    return [item for part in ",".join(values).split(",") if (item := part.strip())]
