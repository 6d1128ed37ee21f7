"""What waits in the inbox. Conditions beside it are those of ``statements``."""

from datetime import datetime
from typing import Any

from sessions_app.log import SessionTransaction
from sessions_app.models import MessagePart, Session, SessionInput, statements


def promotable(session: Session, **conditions: Any) -> list[SessionInput]:
    """Inputs neither promoted, withdrawn nor held, in admission order."""
    return statements.fetch(SessionInput, _promotable(session, conditions), order_by="admitted_seq")


def has_promotable(session: Session, **conditions: Any) -> bool:
    return statements.exists(SessionInput, _promotable(session, conditions))


def wants_wake(session: Session, **conditions: Any) -> bool:
    """Whether a promotable input starts a drain by itself; the others wait until one runs."""
    return has_promotable(session, wake=True, **conditions)


def want_wake(tx: SessionTransaction) -> None:
    """Whatever is promotable starts a drain by itself from now on."""
    statements.update(SessionInput, _promotable(tx.session, {"wake": False}), {"wake": True})


def has_pending(session_id: str, *, up_to: int) -> bool:
    """Whether anything admitted up to that seq is neither promoted nor withdrawn, held or not."""
    return statements.exists(SessionInput, {**_pending(session_id), "admitted_seq__lte": up_to})


def is_due(session: Session, *, now: datetime) -> bool:
    """Whether a drain is to start: a run is owed by now, or an unheld input wants a wake.

    While a call waits for a person, prompts wait too: the answer to it owes the run. A run that is owed
    for a later time, since a provider asked to wait, is not started early by a prompt.
    """
    if session.owed_at is not None:
        return session.owed_at <= now
    return wants_wake(session) and not waits_for_a_person(session.pk)


def waits_for_a_person(session_id: str) -> bool:
    return statements.exists(MessagePart, {"session_id": session_id, "ended_at": None, "approval": "waiting"})


def _pending(session_id: str) -> dict[str, Any]:
    return {"session_id": session_id, "promoted_seq": None, "withdrawn_seq": None}


def _promotable(session: Session, conditions: dict[str, Any]) -> dict[str, Any]:
    where = {**_pending(session.pk), **conditions}
    if session.hold_seq is not None:
        where["admitted_seq__gt"] = max(session.hold_seq, where.get("admitted_seq__gt", 0))
    return where
