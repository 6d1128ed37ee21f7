"""Forgetting workers: the rows and lock files of those that ended long ago."""

import logging
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from django.db.models import Exists, OuterRef, ProtectedError, Q

from sessions_app.models import Session, Worker
from sessions_app.ownership import lockfile

logger = logging.getLogger(__name__)

KEPT: Final = timedelta(days=1)
AT_ONCE: Final = 100
"""Rows of one sweep; the next ones take the rest."""


def prune(*, now: datetime, run_dir: Path) -> int:
    """Remove the rows of workers that ended more than a day ago and that no session refers to, and the lock files
    of this run directory whose worker has no row. Returns how many rows that were.

    A worker that was declared dead and wakes after all finds no row, as it would find one that says dead: it
    registers anew. A file whose lock is held stays.
    """
    pruned = sum(map(_forget, _forgettable(ended_before=now - KEPT)))
    files = [_discard(path) for path in _stray_files(run_dir, made_before=now - KEPT)]
    if pruned or any(files):
        logger.info("worker.pruned", extra={"rows": pruned, "files": sum(files)})
    return pruned


def _forgettable(*, ended_before: datetime) -> list[str]:
    ended = Q(stopped_at__lt=ended_before) | Q(dead_at__lt=ended_before)
    owns = Session.objects.filter(owner=OuterRef("pk"))
    recovers = Session.objects.filter(recovering=OuterRef("pk"))
    rows = Worker.objects.filter(ended, ~Exists(owns), ~Exists(recovers)).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:AT_ONCE])


def _forget(worker_id: str) -> bool:
    try:
        removed, _ = Worker.objects.filter(pk=worker_id).delete()
    except ProtectedError:
        return False
    return removed > 0


def _stray_files(run_dir: Path, *, made_before: datetime) -> list[Path]:
    """A worker makes its file before its row; one that is new may still become a worker's."""
    old = dict(_lock_files(run_dir, made_before=made_before))
    known = set(Worker.objects.filter(pk__in=old).values_list("pk", flat=True)) if old else set()
    return [path for worker_id, path in old.items() if worker_id not in known]


def _lock_files(run_dir: Path, *, made_before: datetime) -> Iterator[tuple[str, Path]]:
    try:
        with os.scandir(run_dir) as entries:
            for entry in entries:
                is_ours = entry.name.startswith("wrk_") and entry.name.endswith(".lock")
                if is_ours and entry.stat(follow_symlinks=False).st_mtime < made_before.timestamp():
                    yield entry.name.removesuffix(".lock"), Path(entry.path)
    except OSError as error:
        logger.warning("worker.lock_files_out_of_reach", extra={"error": type(error).__name__})


def _discard(path: Path) -> bool:
    return lockfile.discard(path)
