"""Nudges: "look now", from any process to the worker that owns a session.

A nudge may be lost, repeated or late. What it speaks of is durable, and the worker looks by itself too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from sessions_app.live import groups, publish
from sessions_app.live.bounded_log import BoundedLog

logger = logging.getLogger(__name__)

Kind = Literal["interrupt", "checkpoint"]
Handler = Callable[[Kind, str], Awaitable[None]]

RETRY_SECONDS: Final = 1.0

_deaf: Final = BoundedLog(logger, "live.nudge.deaf")


def interrupt(*, worker_id: str, session_id: str) -> None:
    """Tell the worker that a durable interrupt request waits for it, or that its session is gone."""
    _nudge("interrupt", worker_id, session_id)


def checkpoint(*, worker_id: str, session_id: str) -> None:
    """Ask the worker to save the text so far of the session's open parts at once."""
    _nudge("checkpoint", worker_id, session_id)


def _nudge(kind: Kind, worker_id: str, session_id: str) -> None:
    publish.post(groups.of_worker(worker_id), {"type": "nudge", "kind": kind, "session": session_id})


async def listen(worker_id: str, handler: Handler) -> None:
    """Call ``handler(kind, session_id)`` for every nudge of this worker, one after the other, until cancelled.

    A layer that is away is joined again when it is back. What the handler raises is logged.
    """
    group = groups.of_worker(worker_id)
    while True:
        try:
            layer = groups.layer()
            channel = await layer.new_channel()
            await layer.group_add(group, channel)
            while True:
                await _handle(await layer.receive(channel), handler)
        except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; a worker listens on)
            _deaf.add(f"{type(error).__name__}: {error}"[:200])
        await asyncio.sleep(RETRY_SECONDS)


async def _handle(message: dict[str, Any], handler: Handler) -> None:
    kind, session_id = message.get("kind"), message.get("session")
    if kind not in ("interrupt", "checkpoint") or not isinstance(session_id, str):
        return
    try:
        await handler(kind, session_id)
    except Exception:
        logger.exception("live.nudge.failed", extra={"kind": kind, "session": session_id})
