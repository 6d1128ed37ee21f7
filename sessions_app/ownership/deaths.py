"""How the death of a worker is established: once, by a compare-and-set on its row."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from django.conf import settings
from django.db.models import QuerySet

from sessions_app.models import Worker
from sessions_app.ownership import lockfile

Death = Literal["proved", "assumed"]


def is_alive(worker: Worker) -> bool:
    """Whether nothing durable says that this worker ended."""
    return worker.stopped_at is None and worker.dead_at is None


def prove_death(worker: Worker, *, now: datetime) -> bool:
    """Whether the worker is dead, established durably if its lock proves it and nobody did before.

    False means undetermined, not alive.
    """
    if not is_alive(worker):
        return True
    return looks_dead(worker) and establish(worker, death="proved", now=now)


def looks_dead(worker: Worker) -> bool:
    """Whether its row or its lock proves that it ended; nothing is written."""
    recorded = lockfile.Recorded(
        boot_id=worker.boot_id, path=worker.lock_path, device=worker.lock_device, inode=worker.lock_inode
    )
    return not is_alive(worker) or lockfile.look(recorded) == "free"


def quiet_since(worker: Worker, *, now: datetime) -> datetime | None:
    """When the worker was last heard of, if it has missed two heartbeats. It proves nothing."""
    missed = timedelta(seconds=2 * settings.HOLDFAST_HEARTBEAT_SECONDS)
    return worker.heartbeat_at if now - worker.heartbeat_at > missed else None


def presumed_alive() -> "QuerySet[Worker]":
    """The workers that nothing durable says ended."""
    return Worker.objects.filter(stopped_at=None, dead_at=None)


def establish(worker: Worker, *, death: Death, now: datetime) -> bool:
    """Declare the worker dead unless it renewed since ``worker`` was read.

    True when it is dead now, whoever declared it. The same declaration again changes nothing.
    """
    declared = Worker.objects.filter(
        pk=worker.pk, heartbeat_count=worker.heartbeat_count, dead_at=None, stopped_at=None
    ).update(dead_at=now, death=death)
    if declared == 1:
        worker.dead_at, worker.death = now, death
        return True
    worker.refresh_from_db()
    return not is_alive(worker)


OWN_RENEWALS: Final = 3
"""How often the watcher itself must have renewed while another stood still; a lease has at least as many beats."""


@dataclass(frozen=True)
class _Seen:
    count: int
    since: float
    renewals: int


@dataclass(kw_only=True)
class Watch:
    """Assumes deaths: counters that stood still for a lease while this watcher's own heartbeat went on.

    A database that was away, a suspended machine and a stepped clock stop this watcher's own renewals
    too, so all counters stand still together and nobody is declared dead. Time alone never suffices: after
    a standstill of everybody, the clock has gone on and no renewal has failed.
    """

    lease_seconds: float
    clock: Callable[[], float] = time.monotonic
    _renewals: int = 0
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def renewed(self) -> None:
        """This watcher's own heartbeat got through."""
        self._renewals += 1

    def renewal_failed(self) -> None:
        """This watcher's own heartbeat did not get through: whatever it saw so far proves nothing."""
        self._seen.clear()

    def look(self, *, now: datetime) -> list[Worker]:
        """Look at every worker once; prove or assume what can be. Returns those found dead in this look."""
        workers = list(Worker.objects.filter(stopped_at=None, dead_at=None))
        self._forget_others({worker.pk for worker in workers})
        return [worker for worker in workers if self._is_dead(worker, now=now)]

    def _is_dead(self, worker: Worker, *, now: datetime) -> bool:
        if prove_death(worker, now=now):
            return True
        return self._stood_still(worker) and establish(worker, death="assumed", now=now)

    def _stood_still(self, worker: Worker) -> bool:
        at, renewals = self.clock(), self._renewals
        seen = self._seen.get(worker.pk)
        if seen is None or seen.count != worker.heartbeat_count:
            self._seen[worker.pk] = _Seen(count=worker.heartbeat_count, since=at, renewals=renewals)
            return False
        return at - seen.since >= self.lease_seconds and renewals - seen.renewals >= OWN_RENEWALS

    def _forget_others(self, present: set[str]) -> None:
        for worker_id in set(self._seen) - present:
            self._seen.pop(worker_id, None)
