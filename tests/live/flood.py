"""An ASGI application that sends without end to whoever connects, for the test of backpressure."""

import os
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django

django.setup()

from sessions_app.live import serving  # noqa: E402

serving.STALL_SECONDS = 2.0  # type: ignore[misc]

PIECE = 100_000
PIECES = 1_000


async def _flood(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        for _ in range(PIECES):
            await send({"type": "websocket.send", "text": "x" * PIECE})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(PIECES):
        await send({"type": "http.response.body", "body": b"x" * PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


application = serving.Serving(_flood)
