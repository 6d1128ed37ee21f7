"""Acquire and release: the session's owner and the fence that proves it."""

from enum import Enum

from django.db.models import Q, QuerySet

from sessions_app import inbox
from sessions_app.log import Held, SessionTransaction
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionMessage


class Refusal(Enum):
    """Why a session was not taken. None of these is an error."""

    OWNED = "owned"
    PARKED = "parked"
    NOTHING_DUE = "nothing_due"
    UNSETTLED = "unsettled"


def take(tx: SessionTransaction, *, worker_id: str) -> Held | Refusal:
    """Make the worker the owner, if a drain is due and nobody owns the session.

    Committing ``tx`` makes it hold. A session with unsettled work and no owner is refused: somebody died
    in it, and settling comes before going on.
    """
    session = tx.session
    if session.owner_id is not None:
        return Refusal.OWNED
    if session.parked:
        return Refusal.PARKED
    if not inbox.is_due(session, now=tx.now):
        return Refusal.NOTHING_DUE
    if has_unsettled_work(session.pk):
        return Refusal.UNSETTLED
    tx.set(owner_id=worker_id, fence=session.fence + 1)
    return Held(session_id=session.pk, worker_id=worker_id, fence=session.fence)


def release(tx: SessionTransaction) -> bool:
    """Give the session up, if nothing promotable and no owed run is there; else False: go on draining.

    The inbox is read in a statement of its own after the lock, so that an admission either is seen here
    or commits after the release and wakes.
    """
    if tx.session.owed_at is not None or inbox.has_promotable(tx.session):
        return False
    give_up(tx)
    return True


def give_up(tx: SessionTransaction) -> None:
    """Release whatever waits; the caller has stored what makes somebody come back for it."""
    tx.set(owner_id=None, interrupt_fence=None, interrupt_seq=None, interrupt_resume=False)


def has_unsettled_work(session_id: str) -> bool:
    """Whether an attempt, a message or a part is still open."""
    unsettled = ProviderAttempt.objects.filter(session_id=session_id, settled_at=None, unknown_at=None)
    unfinished = SessionMessage.objects.filter(session_id=session_id, completed_at=None)
    open_parts = MessagePart.objects.filter(session_id=session_id, ended_at=None)
    return (
        unsettled.values("pk").union(unfinished.values("pk"), open_parts.values("pk")).exists()
    )


def find_owned(worker_id: str) -> "QuerySet[Session]":
    """The sessions that name this worker as owner."""
    return Session.objects.filter(Q(owner_id=worker_id))


def held_of(session: Session) -> Held | None:
    """The ownership that the row records, or None."""
    if session.owner_id is None:
        return None
    return Held(session_id=session.pk, worker_id=session.owner_id, fence=session.fence)
