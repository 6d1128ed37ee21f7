"""A person's answer to a call that waits for one."""

from datetime import datetime
from typing import Literal

from schema.events import ToolApprovalDecided
from schema.problems import AlreadyDecided, CallNotFound, NotWaiting, Superseded
from sessions_app import inbox
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import MessagePart


def answer_call(
    *,
    session_id: str,
    call_id: str,
    action: Literal["approve", "deny"],
    by: str,
    now: datetime,
    reason: str | None = None,
) -> MessagePart:
    """Approve or deny a waiting call, once. The run that goes on is owed in the same transaction, also of a
    parked session.

    Survives any crash once this returns. Raises AlreadyDecided with the first answer, Superseded when
    the step was stopped meanwhile, NotWaiting for a call that nobody asked about, CallNotFound.
    """
    with session_transaction(session_id, now=now) as tx:
        call = _waiting(tx, call_id)
        tx.append(
            ToolApprovalDecided(message=call.message_id, part=call_id, action=action, by=by, reason=reason)
        )
        inbox.unpark(tx)
        inbox.owe(tx, not_before=now)
        wakes.enqueue(tx)
        call.refresh_from_db()
        return call


def _waiting(tx: SessionTransaction, call_id: str) -> MessagePart:
    call = MessagePart.objects.filter(pk=call_id, session_id=tx.session.pk, kind="tool").first()
    if call is None:
        raise CallNotFound(call_id)
    if call.decision is not None:
        raise AlreadyDecided(call.decision)
    if call.approval != "waiting":
        raise NotWaiting(call_id)
    if call.ended_at is not None:
        raise Superseded(call_id)
    return call
