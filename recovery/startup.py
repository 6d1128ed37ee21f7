"""Recovery at the start of a serving process: in the background, after it serves.

A worker recovers in its first sweep, on its coordinator; here the web process looks once, so that a
restart heals even while no worker is up yet.
"""

import logging
import threading

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone

from recovery import service
from sessions_app import figures, ownership

logger = logging.getLogger(__name__)

_once = threading.Lock()


def start() -> None:
    """Start the look, in a serving web process only: never in migrate, tests, shells or workers."""
    if settings.HOLDFAST_ROLE != "web" or not settings.HOLDFAST_STARTUP_RECOVERY:
        return
    if _once.acquire(blocking=False):
        threading.Thread(target=_run, name="startup-recovery", daemon=True).start()


def _run() -> None:
    """Never fails the process: tables that are missing and a database that is away are for the sweep."""
    try:
        if apps.ready_event.wait(60):
            recover_now(kind="web")
    except DatabaseError as error:
        logger.info("recovery.startup.skipped", extra={"reason": type(error).__name__})
    except Exception:
        logger.exception("recovery.startup.failed")
    finally:
        connections.close_all()


def recover_now(*, kind: str) -> None:
    """One pass over the deaths that are proved, as a worker of its own for the time it takes."""
    me = ownership.register(
        kind=kind,
        run_dir=settings.HOLDFAST_RUN_DIR,
        lease_seconds=settings.HOLDFAST_LEASE_SECONDS,
        now=timezone.now(),
    )
    try:
        for _ in service.recover_all(worker_id=me.worker_id, now=timezone.now()):
            pass
    finally:
        me.stop(now=timezone.now())
        figures.store()
