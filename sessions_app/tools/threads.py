"""Threads for tools that are plain functions. Such a call cannot be ended, only left behind.

They are daemons: a function that never returns must not keep the process from ending.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, TypeVar

from django.db import connections

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_RUNNING: Final = 32
MAX_ABANDONED: Final = 32
"""Calls left behind give their place back up to here; beyond, they keep it, so that threads stay bounded."""


class NoThread(Exception):
    """Every place is taken, so the function was not entered."""


class ToolThreads:
    """Bounded places for running functions; each call has a thread of its own."""

    def __init__(self, *, running: int = MAX_RUNNING, abandoned: int = MAX_ABANDONED) -> None:
        self._places = threading.BoundedSemaphore(running)
        self._lock = threading.Lock()
        self._abandoned = 0
        self._max_abandoned = abandoned

    @property
    def abandoned(self) -> int:
        """How many functions still run whose result nobody waits for."""
        return self._abandoned

    async def run(self, function: Callable[[], T], *, name: str, wait_seconds: float) -> T:
        """Run the function in a thread of its own and return its result, or raise what it raised.

        A caller that is cancelled leaves the function behind: it goes on, and its result is dropped.
        Raises NoThread, having entered nothing, when no place came free in time.
        """
        await self._take_place(wait_seconds)
        call = _Call(self, function, name=name)
        return await call.wait()

    async def _take_place(self, seconds: float) -> None:
        """Looked at again and again: places are given back by threads, to whichever loop waits."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = 0.005
        while not self._places.acquire(blocking=False):
            if loop.time() >= deadline:
                raise NoThread
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.1)

    def abandon(self, *, name: str) -> bool:
        """Count a call that was left behind. True: its place is free again at once."""
        with self._lock:
            self._abandoned += 1
            gives_place = self._abandoned <= self._max_abandoned
        if gives_place:
            self._places.release()
        logger.warning("tools.thread.abandoned", extra={"tool": name, "abandoned": self._abandoned})
        return gives_place

    def ended(self, *, was_abandoned: bool, has_place: bool) -> None:
        if was_abandoned:
            with self._lock:
                self._abandoned -= 1
        if has_place:
            self._places.release()


class _Call(Generic[T]):
    """One function in its thread, and the loop that waits for it, or gave up."""

    def __init__(self, threads: ToolThreads, function: Callable[[], T], *, name: str) -> None:
        self._threads = threads
        self._function = function
        self._name = name
        self._future: Future[T] = Future()
        self._lock = threading.Lock()
        self._is_ended = False
        self._was_abandoned = False
        self._has_place = True

    async def wait(self) -> T:
        self._future.set_running_or_notify_cancel()  # so that a caller who leaves cannot cancel it
        threading.Thread(target=self._run, name=f"tool-{self._name}", daemon=True).start()
        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            self._abandon()
            raise

    def _run(self) -> None:
        try:
            result = self._function()
        except BaseException as error:  # noqa: BLE001  raised where the call waits
            self._end()
            self._future.set_exception(error)
        else:
            self._end()
            self._future.set_result(result)

    def _end(self) -> None:
        with contextlib.suppress(Exception):
            connections.close_all()
        with self._lock:
            self._is_ended = True
        self._threads.ended(was_abandoned=self._was_abandoned, has_place=self._has_place)

    def _abandon(self) -> None:
        with self._lock:
            if not self._is_ended:
                self._was_abandoned = True
                self._has_place = not self._threads.abandon(name=self._name)
