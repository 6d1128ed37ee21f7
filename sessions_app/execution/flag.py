"""A flag between processes that no killed process can take with it."""

import contextlib
import os
import select


class Flag:
    """Raised once, seen for ever by every process that was forked after the flag was made.

    It is a byte in a pipe that nobody reads. ``multiprocessing.Event`` is built on locks: its ``set`` waits
    for every waiter to wake up, also for one that was killed, and may not be called in a signal handler.
    """

    def __init__(self) -> None:
        self._looked_at, self._raised = os.pipe()
        os.set_blocking(self._raised, False)

    def fileno(self) -> int:
        """Readable once the flag is raised, for those who wait for several things."""
        return self._looked_at

    def set(self) -> None:
        """Raise it; any number of times, also from a signal handler."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._raised, b"!")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it was raised within ``timeout`` seconds; without a limit, return when it was."""
        poll = select.poll()
        poll.register(self._looked_at, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))
