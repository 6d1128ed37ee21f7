"""A coordinator without drains: a thread that lives until the stop, and a journal of what happened."""

import os
import threading
from pathlib import Path

from tests.platform.journal import note

_stopped = threading.Event()
stopping = threading.Event()
_thread: threading.Thread | None = None


def start() -> None:
    if Path(os.environ["HOLDFAST_TEST_JOURNAL"]).with_name("coordinator-refuses").exists():
        note("refused")
        raise ConnectionError("the database is away")
    global _thread
    _thread = threading.Thread(target=_stopped.wait)  # not a daemon: it outlives the main thread, like ours
    _thread.start()
    note("started")


def request_stop() -> None:
    stopping.set()
    note("stop-requested")


def stop(grace: float) -> bool:
    assert _thread is not None
    stopping.set()
    note("stopped", f"{grace:.1f}")
    if Path(os.environ["HOLDFAST_TEST_JOURNAL"]).with_name("coordinator-hangs").exists():
        threading.Event().wait()
    _stopped.set()
    _thread.join(grace)
    return not _thread.is_alive()
