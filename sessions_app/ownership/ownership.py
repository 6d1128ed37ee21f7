"""Acquire and release: the session's owner and the fence that proves it."""

from datetime import datetime
from enum import Enum

from django.db.models import Q, QuerySet

from sessions_app import inbox
from sessions_app.log import FenceLost, Held, SessionGone, SessionTransaction
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionMessage, statements
from sessions_app.ownership.deaths import prove_death

_IS_ANSWERABLE = Q(state="pending") & ~Q(approval="")


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
    or commits after the release and wakes. Recoveries count anew once nothing is left to do.
    """
    if tx.session.owed_at is not None or inbox.has_promotable(tx.session):
        return False
    if tx.session.recovery_count and _has_ended_normally(tx.session):
        tx.set(recovery_count=0)
    give_up(tx)
    return True


def _has_ended_normally(session: Session) -> bool:
    """Whether nothing waits for a person either: what is held, parked or undecided is no normal end."""
    return not session.parked and session.hold_seq is None and not has_undecided(session.pk)


def has_undecided(session_id: str) -> bool:
    """Whether an unknown attempt or call of the session waits for a decision."""
    attempts = ProviderAttempt.objects.filter(
        session_id=session_id, purpose="step", unknown_at__isnull=False, decided_at=None
    )
    calls = MessagePart.objects.filter(session_id=session_id, unknown_at__isnull=False, decided_at=None)
    return attempts.exists() or calls.exists()


def give_up(tx: SessionTransaction) -> None:
    """Release whatever waits; the caller has stored what makes somebody come back for it.

    A wake that was enqueued meanwhile joined this drain, or finds nothing to do: it spares no later one.
    """
    tx.set(
        owner_id=None,
        interrupt_fence=None,
        interrupt_seq=None,
        interrupt_resume=False,
        wake_enqueued_at=None,
    )


def answerable_calls() -> "QuerySet[MessagePart]":
    """The calls that wait for a person's answer, or got it and were not entered yet."""
    return MessagePart.objects.filter(_IS_ANSWERABLE, ended_at=None)


def open_parts() -> "QuerySet[MessagePart]":
    """The parts that have not ended and that nobody is asked about: a worker is at them, or died at them."""
    return MessagePart.objects.filter(ended_at=None).exclude(_IS_ANSWERABLE)


def has_unsettled_work(session_id: str) -> bool:
    """Whether an attempt, a message or a part is still open, other than for an answer of a person."""
    of_it = {"session_id": session_id}
    if statements.exists(ProviderAttempt, {**of_it, "settled_at": None, "unknown_at": None}):
        return True
    is_open = statements.exists(SessionMessage, {**of_it, "completed_at": None})
    if not is_open and not statements.exists(MessagePart, {**of_it, "ended_at": None}):
        return False
    answerable = answerable_calls().filter(session_id=session_id)
    unfinished = SessionMessage.objects.filter(session_id=session_id, completed_at=None).exclude(
        pk__in=answerable.values("message_id")
    )
    unended = open_parts().filter(session_id=session_id)
    return unfinished.exists() or unended.exists()


def owned_sessions(*, worker_id: str) -> set[tuple[str, int]]:
    """The sessions that name this worker as owner, each with the fence of that ownership."""
    return set(Session.objects.filter(owner_id=worker_id).values_list("pk", "fence"))


def verify(*, held: Held) -> None:
    """Raise FenceLost unless the session is still held, SessionGone when it is no more."""
    row = Session.objects.filter(pk=held.session_id).values_list("owner_id", "fence").first()
    if row is None:
        raise SessionGone(session_id=held.session_id)
    if row != (held.worker_id, held.fence):
        raise FenceLost(session_id=held.session_id, worker_id=held.worker_id, fence=held.fence)


def is_orphan(session_id: str, *, now: datetime) -> bool:
    """Whether the session's owner is dead, or it has none although its work is unsettled."""
    session = Session.objects.select_related("owner").filter(pk=session_id).first()
    if session is None:
        return False
    if session.owner is None:
        return has_unsettled_work(session_id)
    return prove_death(session.owner, now=now)
