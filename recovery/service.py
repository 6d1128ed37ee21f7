"""The one service behind the startup hook, the sweep, a wake that met an orphan, and the command."""

import logging
import time
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError

from recovery import discovery, plan
from recovery.recover import Discovered, Recovered, recover
from sessions_app import inbox
from sessions_app.live import wakes
from sessions_app.log import SessionGone, session_transaction
from sessions_app.models import Session

logger = logging.getLogger(__name__)


def recover_all(
    *,
    worker_id: str | None,
    now: datetime,
    only: Collection[str] = (),
    override: plan.Policy | None = None,
) -> Iterator[Recovered]:
    """Recover orphans, then wake what is due. Safe anywhere, at any time."""
    clock = going_on_from(now)
    yield from recover_orphans(worker_id=worker_id, now=now, only=only, override=override)
    wake_due(now=clock(), only=only)


def recover_orphans(
    *,
    worker_id: str | None,
    now: datetime,
    only: Collection[str] = (),
    override: plan.Policy | None = None,
) -> Iterator[Recovered]:
    """Discover orphans and recover them one by one."""
    clock = going_on_from(now)
    for orphan in discovery.find_orphans(now=now):
        if not only or orphan.session_id in only:
            yield recover(orphan, worker_id=worker_id, now=clock(), override=override)


def going_on_from(now: datetime) -> Callable[[], datetime]:
    """A clock that shows ``now`` and goes on: a pass may take long.

    By the time it began, wakes that were enqueued meanwhile would lie in the future and count as lost.
    """
    began = time.monotonic()
    return lambda: now + timedelta(seconds=time.monotonic() - began)


def recover_one(session_id: str, worker_id: str, *, now: datetime) -> Recovered | None:
    """Recover a session that a wake or its own worker found without anybody draining it."""
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        return None
    orphan = Discovered(session_id=session_id, owner=session.owner_id, fence=session.fence)
    return recover(orphan, worker_id=worker_id, now=now)


def wake_due(*, now: datetime, only: Collection[str] = (), spent_before: datetime | None = None) -> list[str]:
    """Wake what is due and was not woken lately. However many do this at once, each gets one wake.

    A wake from before ``spent_before`` counts as lost: it may lie in the queue of a process that ended.
    """
    woken, clock = [], going_on_from(now)
    for session_id in discovery.find_due(now=now, spent_before=spent_before):
        if only and session_id not in only:
            continue
        try:
            if _wake(session_id, clock=clock, spent_before=spent_before):
                woken.append(session_id)
        except SessionGone:
            continue
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("recovery.wake_failed", extra={"session": session_id})
    return woken


def _wake(session_id: str, *, clock: Callable[[], datetime], spent_before: datetime | None) -> bool:
    """Enqueue a wake if, under the lock, one is still due and nobody owns the session."""
    with session_transaction(session_id, now=clock()) as tx:
        now = clock()  # the lock may have been waited for, while somebody else enqueued one
        if tx.session.owner_id is not None or not inbox.is_due(tx.session, now=now):
            return False
        if discovery.is_on_its_way(tx.session.wake_enqueued_at, now=now, spent_before=spent_before):
            return False
        logger.info("recovery.wake", extra={"session": session_id})
        wakes.enqueue(tx)
        return True
