"""Stop: a durable request that reaches the owner wherever it runs."""

from datetime import datetime

from sessions_app import inbox
from sessions_app.live import nudge
from sessions_app.log import SessionTransaction, session_transaction


def interrupt(*, session_id: str, now: datetime, resume: bool = False) -> bool:
    """Ask the owner to stop, or hold what is about to run. False when nothing ran or was about to.

    The request is durable: its owner serves it when it is nudged or at its next heartbeat. Prompts
    stay in the inbox; with ``resume`` pending steers run afterwards. Raises log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        owner_id = tx.session.owner_id
        if owner_id is not None:
            tx.set(
                interrupt_fence=tx.session.fence, interrupt_seq=tx.head_seq, interrupt_resume=resume
            )
        elif not _pause(tx):
            return False
    if owner_id is not None:
        nudge.interrupt(worker_id=owner_id, session_id=session_id)
    return True


def _pause(tx: SessionTransaction) -> bool:
    """Nobody owns the session: what is about to run is held at once."""
    if not inbox.is_due(tx.session, now=tx.now) and tx.session.owed_at is None:
        return False
    inbox.pause(tx, up_to=tx.head_seq)
    inbox.clear(tx)
    return True
