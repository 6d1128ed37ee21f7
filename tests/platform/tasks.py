"""Background tasks for the tests of the cluster."""

import time

from tests.platform import fake_coordinator
from tests.platform.journal import note


def run(name: str) -> None:
    note("ran", name)


def busy(name: str, seconds: float) -> None:
    """Takes its time and looks at nothing, like a worker that is busy when the signal comes."""
    note("began", name)
    time.sleep(seconds)
    note("ended", name)


def at_limit(name: str) -> None:
    """What a hand-over does at the coordinator's limit: waits a bounded time for room, then fails."""
    note("waited", name)
    fake_coordinator.stopping.wait(timeout=5)
    raise RuntimeError("no room")
