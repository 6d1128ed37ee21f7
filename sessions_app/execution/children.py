"""What the sentinel's children do: run tasks and host the drains, feed the queue, acknowledge."""

import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from multiprocessing import Value
from multiprocessing.connection import wait
from queue import Full
from typing import Any, Final, Protocol, cast

from django.conf import settings
from django_q.queues import Queue
from django_q.signing import BadSignature, SignedPackage
from django_q.worker import worker as run_tasks

from sessions_app.execution.broker import SafeOrmBroker
from sessions_app.execution.flag import Flag

logger = logging.getLogger(__name__)

NOT_STARTED: Final = 73
"""Exit code of a worker whose coordinator could not start; it had not touched a queue yet."""
FAILED: Final = 1
NOT_STOPPED: Final = 74
"""Exit code of a worker whose coordinator did not stop within the grace time."""

SETTLE_SHARE: Final = 0.75
"""The part of the grace time in which steps may settle; the rest is for interrupting what did not."""

RELEASE_SECONDS: Final = 2.0
"""What a worker gets to release its sessions when the cluster has lost another child."""

REDELIVERY: Final = timedelta(seconds=5)
"""When a task whose hand-over failed (a full worker, a database away) is tried again."""

_PUT_SECONDS: Final = 0.2

Task = Mapping[str, Any]


class Coordinator(Protocol):
    """What a worker needs from the module that the setting ``HOLDFAST_COORDINATOR`` names."""

    def start(self) -> object: ...
    def stop(self, grace: float) -> bool: ...
    def request_stop(self) -> object: ...


def work(*, tasks: Queue, results: Queue, stop: Flag, abandon: Flag) -> None:
    """Hand sessions over to this process's coordinator until the stop, then release them all.

    The coordinator stops before the main thread ends: afterwards no executor of the process takes work, and
    sessions could not be released any more.
    """
    host = _Host(cast("Coordinator", import_module(settings.HOLDFAST_COORDINATOR)))
    try:
        host.coordinator.start()
    except Exception:
        logger.exception("queue.worker.not_started")
        sys.exit(NOT_STARTED)
    # What was imported stays for good: full collections need not look at it again and again.
    gc.freeze()
    threading.Thread(target=host.watch, args=(stop, abandon), name="stop-watch", daemon=True).start()
    try:
        run_tasks(_Intake(tasks, results, stop), results, Value("f", -1), None)
        ended = host.release_within_grace()
    except Exception:
        logger.exception("queue.worker.failed")
        os._exit(FAILED)  # the coordinator's thread would keep an orderly exit waiting
    if not ended:
        logger.error("queue.worker.not_stopped")
        results.close()
        results.join_thread()
        os._exit(NOT_STOPPED)


class _Host:
    """Stops the coordinator once, from whichever thread comes first."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self._releasing = threading.Lock()
        self._settle_until: float | None = None

    def watch(self, stop: Flag, abandon: Flag) -> None:
        """Tell the coordinator of a stop at once: the worker itself may still be busy with its queue."""
        wait([stop.fileno(), abandon.fileno()])
        self._settle_until = _settle_until()
        self.coordinator.request_stop()
        abandon.wait()
        if self._releasing.acquire(blocking=False):
            self.coordinator.stop(RELEASE_SECONDS / 2)
            os._exit(0)

    def release_within_grace(self) -> bool:
        with self._releasing:
            settle_until = self._settle_until or _settle_until()
            return self.coordinator.stop(max(0.0, settle_until - time.monotonic()))


def _settle_until() -> float:
    return time.monotonic() + float(settings.HOLDFAST_GRACE_SECONDS) * SETTLE_SHARE


class _Intake:
    """The task queue as a worker reads it: what still waits at the stop goes back, unacknowledged."""

    def __init__(self, tasks: Queue, results: Queue, stop: Flag) -> None:
        self._tasks = tasks
        self._results = results
        self._stop = stop

    def get(self) -> Task | str:
        while (task := self._tasks.get()) != "STOP" and self._stop.is_set():
            self._results.put({**task, "success": False, "result": "the worker stops"})
        return cast("Task | str", task)


def push(*, tasks: Queue, stop: Flag, broker: SafeOrmBroker) -> None:
    """Move tasks from the database to the workers' queue; at the stop, give back what does not fit."""
    while not stop.is_set():
        for task_id, payload in broker.dequeue():
            task = _unpack(task_id, payload, broker)
            if task is not None and not _put(task, tasks, stop):
                broker.give_back(task_id)


def _unpack(task_id: int, payload: str, broker: SafeOrmBroker) -> Task | None:
    """None for a payload that another key signed: it is dropped, sweeps wake its session again."""
    try:
        return {**SignedPackage.loads(payload), "ack_id": task_id}
    except (TypeError, BadSignature):
        logger.warning("queue.task.unreadable", extra={"task": task_id})
        broker.acknowledge(task_id)
        return None


def _put(task: Task, tasks: Queue, stop: Flag) -> bool:
    while not stop.is_set():
        try:
            tasks.put(task, timeout=_PUT_SECONDS)
            return True
        except Full:
            continue
    return False


def acknowledge(*, results: Queue, stop: Flag, broker: SafeOrmBroker) -> None:
    """Remove tasks that were done; the others are delivered again, to another process at the stop."""
    for task in iter(results.get, "STOP"):
        if task["success"]:
            broker.acknowledge(task["ack_id"])
            continue
        if not stop.is_set():
            logger.warning("queue.task.failed", extra={"task": task["ack_id"]})
        broker.give_back(task["ack_id"], after=timedelta(0) if stop.is_set() else REDELIVERY)
