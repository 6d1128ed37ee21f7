"""What waits in the inbox."""

from datetime import datetime

from django.db.models import QuerySet

from sessions_app.models import MessagePart, Session, SessionInput


def pending(session_id: str) -> "QuerySet[SessionInput]":
    """Inputs neither promoted nor withdrawn, in admission order."""
    return SessionInput.objects.filter(session_id=session_id, promoted_seq=None, withdrawn_seq=None).order_by(
        "admitted_seq"
    )


def promotable(session: Session) -> "QuerySet[SessionInput]":
    """Pending and not held."""
    rows = pending(session.pk)
    return rows if session.hold_seq is None else rows.filter(admitted_seq__gt=session.hold_seq)


def wanting_wake(session: Session) -> "QuerySet[SessionInput]":
    """Promotable inputs that start a drain by themselves; the others wait until one runs."""
    return promotable(session).filter(wake=True)


def has_promotable(session: Session) -> bool:
    return promotable(session).exists()


def is_due(session: Session, *, now: datetime) -> bool:
    """Whether a drain is to start: a run is owed by now, or an unheld input wants a wake.

    While a call waits for a person, prompts wait too: the answer to it owes the run. A run that is owed
    for a later time, since a provider asked to wait, is not started early by a prompt.
    """
    if session.owed_at is not None:
        return session.owed_at <= now
    return wanting_wake(session).exists() and not waiting_calls(session.pk).exists()


def waiting_calls(session_id: str) -> "QuerySet[MessagePart]":
    """The calls that wait for a person."""
    return MessagePart.objects.filter(session_id=session_id, ended_at=None, approval="waiting")
