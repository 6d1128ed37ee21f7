"""The queue's broker: django-q2's ORM broker, first in first out, at ease with a database that goes away."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from django.db import Error, connections, transaction
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ

from sessions_app.models import statements

logger = logging.getLogger(__name__)

OUTAGE_PAUSE_SECONDS: Final = 0.25
ACKNOWLEDGE_ATTEMPTS: Final = 6


class SafeOrmBroker(ORM):
    """Delivers each task at least once, oldest first.

    A delivered task is locked for django-q2's ``retry`` seconds. It is delivered again when it was neither
    acknowledged nor given back by then, so that a process may die at any moment. A database error costs one
    pause, where the original lets its process sleep ten seconds and end.
    """

    def enqueue(self, task: str) -> int:
        """Store a task for delivery, in the caller's transaction; answers its number."""
        row = OrmQ(key=self.list_key or Conf.CLUSTER_NAME, payload=task, lock=timezone.now())
        return statements.insert_numbered(row)

    def dequeue(self) -> list[tuple[int, str]]:
        """Lock and return the next tasks as (id, payload); after a pause, when there are none."""
        try:
            taken = self._take() if self._waiting().exists() else []
        except Error as error:
            self._after_outage(error, event="queue.poll.failed")
            return []
        if not taken:
            time.sleep(Conf.POLL)
        return taken

    def acknowledge(self, task_id: int) -> None:
        """Remove a task that was done. If the database stays away, the task will be delivered again."""
        self._persistently(lambda: self.delete(task_id), task_id)

    def give_back(self, task_id: int, *, after: timedelta = timedelta(0)) -> None:
        """Unlock a task that was not done, for delivery after this time instead of at the end of its lock."""
        ready = timezone.now() + after
        self._persistently(lambda: self.get_connection().filter(pk=task_id).update(lock=ready), task_id)

    def _waiting(self) -> Any:
        return self.get_connection().filter(key=self.list_key, lock__lte=timezone.now())

    def _take(self) -> list[tuple[int, str]]:
        """Each row goes to one taker: SQLite lets one transaction write at a time, PostgreSQL skips rows
        that another taker has locked and looks again at those that one has just released."""
        with transaction.atomic(using=Conf.ORM):
            rows = self._waiting().select_for_update(skip_locked=True).order_by("id")[: Conf.BULK]
            taken = [(row.pk, row.payload) for row in rows]
            locked_until = timezone.now() + timedelta(seconds=Conf.RETRY)
            OrmQ.objects.using(Conf.ORM).filter(pk__in=[pk for pk, _ in taken]).update(lock=locked_until)
        return taken

    def _persistently(self, act: Callable[[], object], task_id: int) -> None:
        for _ in range(ACKNOWLEDGE_ATTEMPTS):
            try:
                act()
                return
            except Error as error:
                self._after_outage(error, event="queue.acknowledge.failed")
        logger.error("queue.acknowledge.given_up", extra={"task": task_id})

    def _after_outage(self, error: Error, *, event: str) -> None:
        logger.warning(event, extra={"error": type(error).__name__})
        connections[Conf.ORM].close()
        time.sleep(OUTAGE_PAUSE_SECONDS)
