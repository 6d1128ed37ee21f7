"""Names of groups on the channel layer. Keyed by the site's secret, so that no id leads to a name."""

import asyncio
import functools
from typing import Any

from channels.layers import get_channel_layer
from django.utils.crypto import salted_hmac


@functools.lru_cache(maxsize=4096)
def of_session(session_id: str) -> str:
    """The group of everybody who reads this session."""
    return f"live.{_digest('session', session_id)}"


@functools.lru_cache(maxsize=256)
def of_worker(worker_id: str) -> str:
    """The group in which a worker hears nudges."""
    return f"nudge.{_digest('worker', worker_id)}"


@functools.lru_cache(maxsize=1)
def of_entries() -> str:
    """The group in which every web process hears who signs out."""
    return f"entries.{_digest('entries', '')}"


@functools.lru_cache(maxsize=4096)
def of_web(session_key: str) -> str:
    """What a web session is called there."""
    return _digest("web", session_key)


def _digest(kind: str, identity: str) -> str:
    return salted_hmac(f"sessions_app.live.{kind}", identity, algorithm="sha256").hexdigest()


async def end_channel(channel: str) -> None:
    """Let a channel go. Channels knows no such call: a layer ends a channel when receiving on it is cancelled."""
    receiving = asyncio.ensure_future(layer().receive(channel))
    await asyncio.sleep(0)
    receiving.cancel()
    await asyncio.wait({receiving})


def layer() -> Any:
    """The configured channel layer; Channels has no types for it."""
    return get_channel_layer()
