"""Deleting a session: its content goes everywhere, its ids stay taken."""

from datetime import datetime

from sessions_app.live import nudge, publish
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import (
    MessagePart,
    PartCheckpoint,
    ProviderAttempt,
    SessionEvent,
    SessionInput,
    SessionMessage,
    Tombstone,
)


def delete(*, session_id: str, now: datetime) -> None:
    """Remove the session with all its content and leave tombstones of its ids.

    A worker that drains it learns from its next write that the session is gone and writes nothing more;
    it is nudged, so that it stops at once. Raises log.SessionGone when it was deleted before.
    """
    with session_transaction(session_id, now=now) as tx:
        owner_id = tx.session.owner_id
        _remove(tx, now=now)
    if owner_id is not None:
        nudge.interrupt(worker_id=owner_id, session_id=session_id)
    publish.status(session_id)


def delete_unchanged(*, session_id: str, head_seq: int, now: datetime) -> bool:
    """Remove the session as ``delete`` does, if nothing happened since ``head_seq`` and nobody drains it.

    Raises log.SessionGone when it was deleted before.
    """
    with session_transaction(session_id, now=now) as tx:
        if tx.session.head_seq != head_seq or tx.session.owner_id is not None:
            return False
        _remove(tx, now=now)
    publish.status(session_id)
    return True


def _remove(tx: SessionTransaction, *, now: datetime) -> None:
    _bury(tx.session.pk, now=now)
    tx.session.delete()


def _bury(session_id: str, *, now: datetime) -> None:
    inputs = SessionInput.objects.filter(session_id=session_id)
    messages = SessionMessage.objects.filter(session_id=session_id)
    attempts = ProviderAttempt.objects.filter(session_id=session_id)
    ids = {session_id}
    for rows in (inputs, messages, attempts):
        ids.update(rows.values_list("pk", flat=True))
    Tombstone.objects.bulk_create(Tombstone(id=each, deleted_at=now) for each in sorted(ids))
    PartCheckpoint.objects.filter(part__session_id=session_id).delete()
    MessagePart.objects.filter(session_id=session_id).delete()
    for rows in (attempts, messages, inputs):
        rows.delete()
    SessionEvent.objects.filter(session_id=session_id).delete()
