"""What happens inside the product's processes: commits are numbered, and one of them is a place to die at.

The product has no hook for this. Its processes find ``sitecustomize`` on their PYTHONPATH, which wraps
Django's commit before anything of the product is imported.
"""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parent.parent.parent
DIRECTORY: Final = "HOLDFAST_CRASH_DIRECTORY"
"""Where the counter, the journal and the marks of a house lie; unset: nothing is wrapped."""
POINT: Final = "HOLDFAST_CRASH_POINT"
"""``K:before``, ``K:after`` (kill) or ``K:frozen`` (stop after the commit); unset: only count. K is the number
of a commit, or a verb: then the first commit of this verb."""
MUTATION: Final = "HOLDFAST_CRASH_MUTATION"

_PRODUCT: Final = (f"{PROJECT}/sessions_app/", f"{PROJECT}/recovery/")
_NOT_A_SESSIONS: Final = f"{PROJECT}/sessions_app/execution/broker.py"
_PRIMITIVE: Final = f"{PROJECT}/sessions_app/log/transaction.py"
_PASS_ON: Final = ("_transaction", "_store")
"""Functions that commit for whoever called them."""


def install() -> None:
    directory = os.environ.get(DIRECTORY)
    if not directory:
        return
    _wrap_commit(Path(directory), os.environ.get(POINT, ""))
    if mutation := os.environ.get(MUTATION):
        _mutate_after_setup(mutation)


def _wrap_commit(directory: Path, point: str) -> None:
    from django.db.backends.base.base import BaseDatabaseWrapper

    commit = BaseDatabaseWrapper.commit
    where, _, how = point.partition(":")

    def counted(self: BaseDatabaseWrapper) -> None:
        found = _look_up()
        if found is None:
            commit(self)
            return
        mine = _count(directory, *found)
        is_here = str(mine) == where or (found[0].endswith(f".{where}") and not _is_marked(directory))
        if is_here and how == "before":
            _mark(directory, "killed", signal.SIGKILL)
        commit(self)
        if is_here and how == "after":
            _mark(directory, "killed", signal.SIGKILL)
        if is_here and how == "frozen":
            _mark(directory, "frozen", signal.SIGSTOP)

    BaseDatabaseWrapper.commit = counted  # type: ignore[method-assign]


def _look_up() -> tuple[str, list[str]] | None:
    """Which verb of the product commits, and the events it stores; None for a commit of the queue or Django's."""
    verb, events = "", []
    for frame in _frames():
        path = frame.f_code.co_filename
        if path == _NOT_A_SESSIONS:
            return None
        if path == _PRIMITIVE and "tx" in frame.f_locals:
            events = [event.type for event in frame.f_locals["tx"].events]
        elif not verb and path.startswith(_PRODUCT) and not _passes_on(frame):
            module = path.removeprefix(f"{PROJECT}/").removesuffix(".py").replace("/", ".")
            verb = f"{module}.{frame.f_code.co_name}"
    return (verb, events) if verb else None


def _passes_on(frame: FrameType) -> bool:
    return frame.f_code.co_filename == _PRIMITIVE or frame.f_code.co_name in _PASS_ON


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _count(directory: Path, verb: str, events: list[str]) -> int:
    """The number of this commit among those of all processes of the house."""
    with (directory / "counter").open("a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        number = int(counter.read() or 0) + 1
        counter.truncate(0)
        counter.write(str(number))
        counter.flush()
        line = {"n": number, "role": _role(), "pid": os.getpid(), "verb": verb, "events": events}
        with (directory / "commits").open("a") as journal:
            journal.write(json.dumps(line) + "\n")
    return number


def _role() -> str:
    return os.environ.get("HOLDFAST_ROLE") or "command"


def _mark(directory: Path, name: str, number: signal.Signals) -> None:
    """Tell the driver, then go."""
    (directory / name).write_text(str(os.getpid()))
    os.kill(os.getpid(), number)


def _is_marked(directory: Path) -> bool:
    return (directory / "killed").exists() or (directory / "frozen").exists()


def _mutate_after_setup(name: str) -> None:
    """The product's modules can be changed once its apps are loaded."""
    from django.apps.registry import Apps

    populate: Callable[..., Any] = Apps.populate
    done: list[str] = []

    def populated(self: Apps, *arguments: Any, **named: Any) -> None:
        populate(self, *arguments, **named)
        if not done:
            from tests.crash import mutants

            done.append(name)
            mutants.apply(name)

    Apps.populate = populated  # type: ignore[method-assign]
