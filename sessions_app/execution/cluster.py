"""The worker processes: django-q2's cluster, made to fail as a whole instead of going on broken.

    main -> sentinel -> workers (each hosts a coordinator with many drains), pusher, monitor

django-q2's processes share queues whose locks live in shared memory. A process that is killed while it holds
one (an idle worker nearly always does) leaves the others waiting for ever, while the cluster looks healthy.
Here any child that ends unexpectedly ends the cluster, with an exit code that its supervisor acts on: the
surviving workers release their sessions, all processes go, tasks that were not acknowledged come again.
"""

import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from queue import Full
from typing import Final, NoReturn

from django.conf import settings
from django.db import connections
from django_q import cluster as django_q_cluster

from sessions_app.execution import children, lineage
from sessions_app.execution.flag import Flag

logger = logging.getLogger(__name__)

CHILD_LOST: Final = 70
OVER_GRACE: Final = 72

_LOOK_SECONDS: Final = 0.5
_START_AGAIN_SECONDS: Final = 1.0
_PUT_SECONDS: Final = 0.2


class Cluster(django_q_cluster.Cluster):
    """The main process. Its signal handlers raise a flag and do nothing else."""

    def __init__(self, *, workers: int) -> None:
        self._workers = workers
        self._asked_to_stop = Flag()
        super().__init__()

    def sig_handler(self, signum: int, frame: object) -> None:
        self._asked_to_stop.set()

    def run(self) -> int:
        """Run until SIGTERM or SIGINT; returns the exit code.

        0: stopped as asked, every session released. Anything else: something died or did not end in time,
        nothing of the cluster is left, and the supervisor should start it again.
        """
        lineage.name_process("hf-cluster")
        import_module(settings.HOLDFAST_COORDINATOR)  # before the fork, so that its memory is shared
        connections.close_all()
        gc.freeze()
        self.sentinel = django_q_cluster.get_mp_context().Process(
            target=Sentinel,
            kwargs={"stop": self._asked_to_stop, "workers": self._workers, "main": os.getpid()},
        )
        self.sentinel.start()
        self.sentinel.join()
        return self._exit_code(self.sentinel.exitcode)

    def _exit_code(self, code: int) -> int:
        if code < 0 or (code == 0 and not self._asked_to_stop.is_set()):
            return CHILD_LOST
        return code


class Sentinel(django_q_cluster.Sentinel):
    """Starts the others and watches them; lives in its constructor, as the original does."""

    def __init__(self, *, stop: Flag, workers: int, main: int) -> None:
        # The original lets SIGTERM kill it, but signals to a whole process group are meant for main.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        lineage.die_with_parent(main)
        lineage.name_process("hf-sentinel")
        self._workers = workers
        self._abandon = Flag()
        super().__init__(stop_event=stop, start_event=Flag(), cluster_id=None)

    def start(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not SIG_IGN, which every program that a worker starts would inherit.
            signal.signal(number, _pay_no_attention)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
        try:
            self.spawn_cluster()
            self.guard()
        except Exception:
            logger.exception("queue.sentinel.failed")
            self._fail(CHILD_LOST)

    def spawn_cluster(self) -> None:
        connections.close_all()
        for _ in range(self._workers):
            self.spawn_worker()
        self.monitor = self.spawn_monitor()
        self.pusher = self.spawn_pusher()

    def spawn_worker(self) -> None:
        self.pool.append(
            self._fork(
                "hf-worker",
                children.work,
                tasks=self.task_queue,
                results=self.result_queue,
                abandon=self._abandon,
            )
        )

    def spawn_monitor(self) -> BaseProcess:
        return self._fork("hf-monitor", children.acknowledge, results=self.result_queue, broker=self.broker)

    def spawn_pusher(self) -> BaseProcess:
        return self._fork("hf-pusher", children.push, tasks=self.task_queue, broker=self.broker)

    def guard(self) -> None:
        while not self._wait_for_stop():
            for process in self._ended():
                self.reincarnate(process)
        self.stop()

    def reincarnate(self, process: BaseProcess) -> None:
        """Replace a worker that ended before it touched a queue; with any other, the cluster is lost."""
        if process.exitcode != children.NOT_STARTED:
            self._lose(process)
        self.stop_event.wait(_START_AGAIN_SECONDS)
        self.pool.remove(process)
        connections.close_all()
        self.spawn_worker()

    def stop(self) -> None:
        """Let every process end by itself, in the order in which none waits for another that is gone.

        The flag that brought us here is seen by the children too: the pusher gives back what does not fit,
        coordinators take nothing new, workers hand waiting tasks back without running them.
        """
        deadline = time.monotonic() + settings.HOLDFAST_GRACE_SECONDS
        self._await_end([self.pusher], deadline)
        for _ in self.pool:
            self._put(self.task_queue, deadline)
        self._await_end(self.pool, deadline)
        self._put(self.result_queue, deadline)
        self._await_end([self.monitor], deadline)

    def _fork(self, name: str, run: Callable[..., None], **arguments: object) -> BaseProcess:
        sentinel = os.getpid()

        def tied() -> None:
            lineage.die_with_parent(sentinel)
            lineage.name_process(name)
            run(stop=self.stop_event, **arguments)

        process: BaseProcess = django_q_cluster.get_mp_context().Process(target=tied, name=name, daemon=True)
        process.start()
        return process

    def _children(self) -> Sequence[BaseProcess]:
        return [*self.pool, self.monitor, self.pusher]

    def _ended(self) -> list[BaseProcess]:
        return [process for process in self._children() if not process.is_alive()]

    def _wait_for_stop(self) -> bool:
        """Whether the stop was asked for; returns early with False when a child ended."""
        wait([self.stop_event, *(process.sentinel for process in self._children())], _LOOK_SECONDS)
        return bool(self.stop_event.is_set())

    def _await_end(self, processes: Sequence[BaseProcess], deadline: float) -> None:
        while alive := [process for process in processes if process.is_alive()]:
            self._check(deadline)
            wait([process.sentinel for process in alive], _LOOK_SECONDS)
        self._check(deadline)

    def _put(self, queue: django_q_cluster.Queue, deadline: float) -> None:
        while True:
            self._check(deadline)
            try:
                queue.put("STOP", timeout=_PUT_SECONDS)
                return
            except Full:
                continue

    def _check(self, deadline: float) -> None:
        """While stopping, an end is in order; a death is not, and neither is being late."""
        for process in self._ended():
            if process.exitcode not in (0, children.NOT_STARTED):
                self._lose(process)
        if time.monotonic() > deadline:
            logger.error("queue.stop.over_grace", extra={"alive": [each.name for each in self._alive()]})
            self._fail(OVER_GRACE)

    def _alive(self) -> list[BaseProcess]:
        return [process for process in self._children() if process.is_alive()]

    def _lose(self, process: BaseProcess) -> NoReturn:
        """A queue lock may have died with the process: let the workers release their sessions, then go."""
        logger.critical(
            "queue.child.lost",
            extra={"child": process.name, "child_pid": process.pid, "exit_code": process.exitcode},
        )
        self._abandon.set()
        workers = [worker for worker in self.pool if worker is not process]
        deadline = time.monotonic() + children.RELEASE_SECONDS + _LOOK_SECONDS
        while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
            wait([worker.sentinel for worker in workers if worker.is_alive()], _LOOK_SECONDS)
        self._fail(CHILD_LOST)

    def _fail(self, code: int) -> NoReturn:
        for process in self._alive():
            process.kill()
        sys.stderr.flush()
        os._exit(code)


def _pay_no_attention(signum: int, frame: object) -> None:
    """Main decides what a signal means, and tells by the flag."""
