"""The wake: an advisory task that says "look at this session". The door to django-q2."""

from datetime import datetime, timedelta
from typing import Final, cast

from django.conf import settings
from django_q.models import OrmQ
from django_q.tasks import async_task

from sessions_app.log import SessionTransaction

TASK: Final = "sessions_app.execution.tasks.drain"


def enqueue(tx: SessionTransaction) -> None:
    """Enqueue a wake in the transaction ``tx``: both commit together or neither does.

    Whoever asks gets one, however lately another was enqueued: that one may be lost, and a repeat does no
    harm. Only the sweep, which asks by itself, looks at ``is_fresh`` first.
    """
    async_task(TASK, tx.session.pk)
    tx.set(wake_enqueued_at=tx.now)


def is_fresh(enqueued_at: datetime | None, *, now: datetime) -> bool:
    """Whether a wake enqueued at that time can still be on its way.

    One older than twice django-q2's retry time was lost; one in the future is a clock that was stepped.
    """
    if enqueued_at is None:
        return False
    return now - lifetime() <= enqueued_at <= now


def depth() -> int:
    """How many wakes are in the queue, those that are being handed over included."""
    count: int = OrmQ.objects.count()
    return count


def lifetime() -> timedelta:
    return timedelta(seconds=2 * cast("int", settings.Q_CLUSTER["retry"]))
