"""Resume: go on with what is there, without a new prompt."""

from datetime import datetime

from sessions_app import inbox, ownership
from sessions_app.live import wakes
from sessions_app.log import session_transaction
from sessions_app.models import MessagePart, SessionMessage, Worker


def resume(*, session_id: str, now: datetime) -> bool:
    """Lift a pause and let the session run, or join what runs. False when there is nothing to run.

    A turn without an answer is owed a run once this returned True, and what is pending wants a wake, so that
    a crash right after it loses nothing. What is sent is a new attempt, never an old one; a turn that was
    answered is not answered again. A staged revert waits for a prompt, or to be cleared: until then there is
    nothing to run. Raises log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        if tx.session.staged_revert:
            return False
        if tx.session.hold_reason in ("paused", "undecided"):
            inbox.lift(tx, because="resume")
        if tx.session.owner_id is not None:
            # A Stop that its owner has not served yet is taken back, or this resume would end in a pause.
            tx.set(interrupt_fence=None, interrupt_seq=None, interrupt_resume=False)
            if tx.session.parked:
                inbox.unpark(tx)
                wakes.enqueue(tx)
            elif _is_orphan(tx.session.owner_id):
                # Whoever settles what was lost is told that a person wants it to go on.
                tx.set(interrupt_resume=True)
                wakes.enqueue(tx)
            return True
        is_owed = tx.session.owed_at is not None or _is_unanswered(tx.session.pk)
        inbox.unpark(tx)
        if not (is_owed or inbox.has_promotable(tx.session)):
            return False
        inbox.want_wake(tx)
        if is_owed:
            inbox.owe(tx, not_before=now)
        wakes.enqueue(tx)
        return True


def _is_orphan(owner_id: str) -> bool:
    return ownership.looks_dead(Worker.objects.get(pk=owner_id))


def _is_unanswered(session_id: str) -> bool:
    """Whether the newest turn has no whole answer. One that a model is still to go on with is none: it was paused,
    or there are calls whose results it has not read, however the step says that it ended."""
    newest = (
        SessionMessage.objects.filter(
            session_id=session_id, reverted_seq=None, type__in=("user", "synthetic", "assistant")
        )
        .order_by("-seq")
        .first()
    )
    if newest is None:
        return False
    if newest.type != "assistant" or newest.state != "completed":
        return True
    return (
        newest.finish in ("tool_calls", "paused")
        or MessagePart.objects.filter(message_id=newest.pk, kind="tool", hosted=False).exists()
    )
