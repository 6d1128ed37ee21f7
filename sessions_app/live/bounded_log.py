"""Logs what can happen thousands of times a second: a line at most every few seconds, with the count."""

import logging
import threading
import time
from typing import Final

EVERY_SECONDS: Final = 10.0


class BoundedLog:
    """Counts occurrences of one event and logs them in lines that are at least some seconds apart."""

    def __init__(self, logger: logging.Logger, event: str, *, every: float = EVERY_SECONDS) -> None:
        self._logger = logger
        self._event = event
        self._every = every
        self._lock = threading.Lock()
        self._count = 0
        self._quiet_until = 0.0
        self.total = 0

    def add(self, reason: str, *, count: int = 1) -> None:
        """Count an occurrence; log it now, or with the first one after the quiet time."""
        with self._lock:
            self.total += count
            self._count += count
            now = time.monotonic()
            if now < self._quiet_until:
                return
            told, self._count = self._count, 0
            self._quiet_until = now + self._every
        self._logger.warning(self._event, extra={"reason": reason, "count": told})
