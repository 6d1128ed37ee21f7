"""Asking a tool what became of an earlier call of its own."""

import asyncio
import logging
from dataclasses import replace
from typing import Final

from schema.problems import CannotAsk
from schema.text import clean
from sessions_app.models import MessagePart
from sessions_app.tools import declare, registry
from sessions_app.tools.port import Reconcile, Reconciled, ToolContext

logger = logging.getLogger(__name__)

CANNOT_TELL: Final = Reconciled(happened="cannot_tell")
MAX_OUTPUT_CHARACTERS: Final = 32_000


def can_be_asked(call: MessagePart) -> bool:
    """Whether what became of the call is unknown, nobody has said it, and its tool may know it."""
    if call.unknown_at is None or call.decision is not None:
        return False
    try:
        get_reconcile(call)
    except (CannotAsk, registry.UnusableTool, registry.DuplicateTool):
        return False
    return True


def get_reconcile(call: MessagePart) -> Reconcile:
    """How the tool of this call is asked. Raises CannotAsk when it offers nothing of the kind."""
    if call.hosted:
        raise CannotAsk(call.pk, "its provider ran it. Ask about the attempt instead.")
    tool = registry.local().get(call.name)
    if tool is None or tool.reconcile is None:
        raise CannotAsk(call.pk, f"the tool {call.name!r} cannot tell. Say yourself what became of it.")
    return tool.reconcile


def ask(call: MessagePart) -> Reconciled:
    """What the tool found out, its output short and clean. It only looks; asking again does no harm.

    A tool that fails or takes longer than it may run cannot tell. Raises CannotAsk.
    """
    reconcile = get_reconcile(call)
    try:
        found = asyncio.run(_ask(reconcile, call))
    except Exception as error:  # noqa: BLE001 - a tool fails in its own ways, and its words may hold anything
        extra = {"tool": call.name, "call": call.pk, "error": type(error).__name__}
        logger.warning("tools.reconcile.failed", extra=extra)
        return CANNOT_TELL
    return replace(found, output=declare.bounded(clean(found.output), MAX_OUTPUT_CHARACTERS))


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
