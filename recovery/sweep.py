"""The periodic sweep of a worker."""

import logging
from datetime import datetime

from recovery import discovery
from sessions_app import inbox
from sessions_app.live import wakes
from sessions_app.log import SessionGone, session_transaction

logger = logging.getLogger(__name__)


def sweep(now: datetime, worker_id: str) -> None:
    """Wake what is due and was not woken lately. However many sweep at once, each gets one wake."""
    for session_id in discovery.find_due(now=now):
        try:
            wake(session_id, now=now)
        except SessionGone:
            continue


def wake(session_id: str, *, now: datetime) -> None:
    """Enqueue a wake if, under the lock, one is still due and nobody owns the session."""
    with session_transaction(session_id, now=now) as tx:
        if tx.session.owner_id is None and inbox.is_due(tx.session, now=now):
            logger.info("recovery.wake", extra={"session": session_id})
            wakes.enqueue(tx)
