"""Calls that will have no result of their own: how they end."""

from schema.events import ToolFailed
from sessions_app.log import SessionTransaction
from sessions_app.models import MessagePart
from sessions_app.tools.port import INTERRUPTED


def fail_unfinished(
    tx: SessionTransaction,
    *,
    message_id: str,
    error: str = INTERRUPTED,
    only_hosted: bool = False,
    only_entered: bool = False,
    is_known: bool = False,
) -> bool:
    """End every call of the message that has no end yet. True when one of them is unknown now.

    One that was entered, or that the provider runs, is unknown unless it only reads: it may have had its
    effect. The others are known not to have run. ``is_known``: their provider says that nothing was lost.
    """
    unfinished = MessagePart.objects.filter(message_id=message_id, kind="tool", ended_at=None)
    if only_hosted:
        unfinished = unfinished.filter(hosted=True)
    has_unknown = False
    for part in unfinished.order_by("index"):
        if only_entered and not is_entered(part):
            continue
        is_unknown = not is_known and is_entered(part) and part.effect != "read"
        has_unknown = has_unknown or is_unknown
        tx.append(ToolFailed(message=message_id, part=part.pk, error=error, unknown=is_unknown))
    return has_unknown


def is_entered(part: MessagePart) -> bool:
    """Whether the call may have had an effect: its function was entered, or the provider runs it."""
    return part.state == "running" or part.hosted
