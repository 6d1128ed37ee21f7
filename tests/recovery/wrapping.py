"""Stops or kills the product's processes at a place that a test names by a file in its directory.

``freeze-after-call``: a worker stops itself (SIGSTOP) once ``tool.called`` is committed, before it enters.
``kill-recoverer-of``: whoever claims one of the sessions named in it is killed, after it was counted.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parent.parent.parent
DIRECTORY: Final = "HOLDFAST_TEST_DIRECTORY"
FREEZE: Final = "freeze-after-call"
KILL: Final = "kill-recoverer-of"


def environ(directory: Path) -> dict[str, str]:
    """What the processes under test need to come here."""
    return {
        "PYTHONPATH": f"{PROJECT}/tests/recovery/children{os.pathsep}{PROJECT}",
        DIRECTORY: str(directory),
    }


def install() -> None:
    if DIRECTORY not in os.environ:
        return
    from django.apps.registry import Apps

    populate: Callable[..., Any] = Apps.populate
    done: list[bool] = []

    def populated(self: Apps, *arguments: Any, **named: Any) -> None:
        populate(self, *arguments, **named)
        if not done:
            done.append(True)
            _wrap(Path(os.environ[DIRECTORY]))

    Apps.populate = populated  # type: ignore[method-assign]


def _wrap(directory: Path) -> None:
    from recovery import snapshot
    from sessions_app.execution import database
    from sessions_app.execution.recorder import Recorder

    take, complete, call = snapshot.take, Recorder.complete, database._call
    alone = threading.Lock()

    def taken(session: Any, **named: Any) -> Any:
        doomed = directory / KILL
        if doomed.exists() and session.pk in doomed.read_text().split():
            with (directory / "killed-recoverers").open("a") as file:
                file.write(f"{os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return take(session, **named)

    def called(unit: Any, arguments: Any) -> Any:
        """One unit at a time, where a process is to stop itself: a lock of the database that another thread held
        then would be held for as long."""
        with alone if (directory / FREEZE).exists() else nullcontext():
            return call(unit, arguments)

    def completed(self: Recorder, *arguments: Any, **named: Any) -> Any:
        following = complete(self, *arguments, **named)
        freeze = directory / FREEZE
        if freeze.exists() and freeze.read_text() == self.held.session_id:
            freeze.unlink()
            (directory / "frozen").write_text(str(os.getpid()))
            # To this thread: a signal to the process may reach another one, while this one goes on and enters.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return following

    snapshot.take = taken
    database._call = called
    Recorder.complete = completed  # type: ignore[method-assign]
