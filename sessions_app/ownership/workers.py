"""A worker's own life: register, renew, doubt, stop."""

import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from schema.ids import WorkerId
from sessions_app import identity
from sessions_app.models import Worker
from sessions_app.ownership.lockfile import LockFile

logger = logging.getLogger(__name__)


def boot_clock() -> float:
    """Seconds since boot, suspended time included, so that a machine that slept knows how long."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


@dataclass(kw_only=True)
class Registration:
    """This process as a worker. Made by ``register``; used by the process that made it only."""

    worker_id: WorkerId
    lock: LockFile
    lease_seconds: float
    clock: Callable[[], float] = boot_clock
    count: int = 0
    renewed_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.renewed_at = self.clock()

    def renew(self, *, now: datetime) -> bool:
        """Renew the heartbeat. False when this worker was declared dead or stopped: register anew.

        A database error propagates and renews nothing.
        """
        asked_at = self.clock()
        renewed = Worker.objects.filter(pk=self.worker_id, dead_at=None, stopped_at=None).update(
            heartbeat_count=self.count + 1, heartbeat_at=now
        )
        if renewed != 1:
            return False
        self.count += 1
        self.renewed_at = asked_at
        return True

    def is_in_doubt(self) -> bool:
        """Whether the lease ran out unrenewed, so that another worker may already have taken over."""
        return self.clock() - self.renewed_at > self.lease_seconds

    def stop(self, *, now: datetime) -> None:
        """Mark this worker stopped, then give its lock up. A repeat changes nothing."""
        Worker.objects.filter(pk=self.worker_id, stopped_at=None).update(stopped_at=now)
        self.lock.close()


def register(*, kind: str, run_dir: Path, lease_seconds: float, now: datetime) -> Registration:
    """Take a lock file of this process's own, then store the worker's row.

    A crash in between leaves a file that nobody refers to. Raises OSError when the run directory
    cannot be used.
    """
    worker_id = identity.new_worker_id()
    run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = LockFile(run_dir / f"{worker_id}.lock")
    try:
        _store(worker_id, kind=kind, lock=lock, now=now)
    except Exception:
        lock.close()
        raise
    logger.info("worker.registered", extra={"worker": worker_id})
    return Registration(worker_id=worker_id, lock=lock, lease_seconds=lease_seconds)


def _store(worker_id: WorkerId, *, kind: str, lock: LockFile, now: datetime) -> None:
    Worker.objects.create(
        id=worker_id,
        host=socket.gethostname()[:255],
        boot_id=lock.recorded.boot_id,
        kind=kind,
        pid=os.getpid(),
        lock_path=lock.recorded.path,
        lock_device=lock.recorded.device,
        lock_inode=lock.recorded.inode,
        started_at=now,
        heartbeat_at=now,
    )
