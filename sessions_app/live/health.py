"""Whether the channel layer carries messages, for the readiness page."""

import asyncio
import logging
import secrets
from typing import Final

from sessions_app.live import groups

logger = logging.getLogger(__name__)

WITHIN_SECONDS: Final = 2.0


async def layer_answers(*, within: float = WITHIN_SECONDS) -> bool:
    """Send a message to a group of its own and wait for it, on the running loop."""
    group = f"health.{secrets.token_hex(8)}"
    try:
        async with asyncio.timeout(within):
            layer = groups.layer()
            channel = await layer.new_channel()
            await layer.group_add(group, channel)
            try:
                await layer.group_send(group, {"type": "health"})
                await layer.receive(channel)
            finally:
                await layer.group_discard(group, channel)
                await groups.end_channel(channel)
    except Exception as error:  # noqa: BLE001  (a layer fails in its own ways; each is an answer)
        logger.warning("live.layer.silent", extra={"reason": type(error).__name__})
        return False
    return True
