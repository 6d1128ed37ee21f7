"""Stop: a durable request that reaches the owner wherever it runs."""

from datetime import datetime

from schema.events import ExecutionInterrupted
from sessions_app import inbox
from sessions_app.execution import stages
from sessions_app.live import nudge, wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.tools import calls


def interrupt(*, session_id: str, now: datetime, resume: bool = False) -> bool:
    """Ask the owner to stop, or hold what is about to run. False when nothing ran or was about to.

    The request is durable: its owner serves it when it is nudged or at its next heartbeat. A step that
    waits for a person has no owner and is ended here. Prompts stay in the inbox; with ``resume``
    pending steers run afterwards. Raises log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        owner_id = tx.session.owner_id
        if owner_id is not None:
            tx.set(interrupt_fence=tx.session.fence, interrupt_seq=tx.head_seq, interrupt_resume=resume)
        elif not (_end_waiting_step(tx, resume=resume) or _pause(tx, resume=resume)):
            return False
    if owner_id is not None:
        nudge.interrupt(worker_id=owner_id, session_id=session_id)
    return True


def _end_waiting_step(tx: SessionTransaction, *, resume: bool) -> bool:
    """End the step whose calls wait for a person, the way its owner would. False when there is none."""
    message_id = stages.open_message(tx.session.pk)
    if message_id is None:
        return False
    calls.fail_unfinished(tx, message_id=message_id)
    tx.append(stages.interrupted(message_id, "user"))
    tx.append(ExecutionInterrupted(message=message_id, reason="user"))
    inbox.clear(tx)
    if resume and inbox.wants_wake(tx.session, delivery="steer"):
        wakes.enqueue(tx)
    elif inbox.has_pending(tx.session.pk, up_to=tx.head_seq):
        inbox.pause(tx, up_to=tx.head_seq)
    return True


def _pause(tx: SessionTransaction, *, resume: bool) -> bool:
    """Nobody owns the session: what is about to run is held at once, but for steers that are to go on."""
    if tx.session.owed_at is None and not inbox.wants_wake(tx.session):
        return False
    inbox.clear(tx)
    if resume and inbox.wants_wake(tx.session, delivery="steer"):
        wakes.enqueue(tx)
    else:
        inbox.pause(tx, up_to=tx.head_seq)
    return True
