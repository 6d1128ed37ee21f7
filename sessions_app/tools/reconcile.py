"""Asking a tool what became of an earlier call of its own."""

import asyncio
import logging

from schema.problems import CannotAsk
from sessions_app.models import MessagePart
from sessions_app.tools import registry
from sessions_app.tools.port import Reconcile, Reconciled, ToolContext

logger = logging.getLogger(__name__)

CANNOT_TELL = Reconciled(happened="cannot_tell")


def get_reconcile(call: MessagePart) -> Reconcile:
    """How the tool of this call is asked. Raises CannotAsk when it offers nothing of the kind."""
    if call.hosted:
        raise CannotAsk(call.pk, "its provider ran it. Ask about the attempt instead.")
    tool = registry.local().get(call.name)
    if tool is None or tool.reconcile is None:
        raise CannotAsk(call.pk, f"the tool {call.name!r} cannot tell. Say yourself what became of it.")
    return tool.reconcile


def ask(call: MessagePart) -> Reconciled:
    """What the tool found out. It only looks; asking again does no harm.

    A tool that fails or takes longer than it may run cannot tell. Raises CannotAsk.
    """
    reconcile = get_reconcile(call)
    try:
        return asyncio.run(_ask(reconcile, call))
    except Exception:
        logger.exception("tools.reconcile.failed", extra={"tool": call.name, "call": call.pk})
        return CANNOT_TELL


async def _ask(reconcile: Reconcile, call: MessagePart) -> Reconciled:
    tool = registry.local()[call.name]
    context = ToolContext(
        session_id=call.session_id,
        call_id=call.pk,
        idempotency_key=call.pk,
        progress=lambda text: None,
    )
    async with asyncio.timeout(tool.timeout_seconds):
        return await reconcile(call.input or {}, context)
