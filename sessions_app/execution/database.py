"""Database work of a worker: synchronous units on dedicated threads, awaited from the loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")


class Runs(Protocol):
    """Where the units of a step are run."""

    async def run(self, unit: Callable[..., T], /, **arguments: Any) -> T: ...


class Here:
    """Runs units that touch no database at once, where they are asked for."""

    async def run(self, unit: Callable[..., T], /, **arguments: Any) -> T:
        return unit(**arguments)


class DatabaseThreads:
    """A small pool whose threads keep their connections; one unit is one call.

    SQLite gets one thread (it has one writer), PostgreSQL a few.
    """

    def __init__(self, *, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads = threads

    async def run(self, unit: Callable[..., T], /, **arguments: Any) -> T:
        """Run one unit and return its result.

        A cancelled caller still waits until the unit has ended: what it committed is never lost sight of.
        """
        future = asyncio.get_running_loop().run_in_executor(self._executor, _call, unit, arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future})
            if not future.cancelled() and future.exception() is not None:
                raise future.exception() from None  # type: ignore[misc]
            raise

    def close(self) -> None:
        """Wait for what runs, close the threads' connections, take nothing more."""
        together = threading.Barrier(self._threads)
        for _ in range(self._threads):
            self._executor.submit(_close_connections, together)
        self._executor.shutdown(wait=True)


def _close_connections(together: threading.Barrier) -> None:
    """Wait for the other threads first: none of them may take this task twice while another takes none."""
    together.wait()
    connections.close_all()


def _call(unit: Callable[..., T], arguments: dict[str, Any]) -> T:
    close_old_connections()
    return unit(**arguments)
