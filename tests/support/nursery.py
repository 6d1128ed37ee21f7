"""Starts processes of the product by forking: one parent has imported what they all import before settings are read.

    with Nursery.running() as nursery:
        child = nursery.start(["manage.py", "drain_worker"], environ=..., output=path)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=30) == 0

A child is a process like any other, in a session of its own, and ends as it would; only the importing is
spared, which is most of what a start costs. Nothing of the product that reads settings is imported before the
fork, and the child runs its command from the very beginning, ``sitecustomize`` of its PYTHONPATH included.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from io import TextIOWrapper

PROJECT: Final = Path(__file__).resolve().parent.parent.parent
_PATIENCE_SECONDS: Final = 60.0
_PID_WIDTH: Final = 10
_SITE: Final = "sitecustomize"

_SCOUT: Final = (
    "import django, sys; django.setup(); import config.asgi, config.urls, django.core.management;"
    "import sessions_app.execution.cluster, sessions_app.execution.coordinator, daphne.cli;"
    "from django.urls import get_resolver; get_resolver().url_patterns;"
    "print('\\n'.join(sys.modules))"
)
"""Tells what the product imports, by importing it."""

_READ_SETTINGS: Final = ("sessions_app", "recovery", "config", "tests", "__", _SITE)
_MAKE_LOOPS: Final = ("daphne", "twisted.internet.reactor", "twisted.internet.default")
"""They open descriptors at their import, which forks would share."""


@dataclass(kw_only=True)
class Child:
    """A process that was started; the nursery is its parent and tells its end."""

    pid: int
    line: socket.socket
    returncode: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code as subprocess tells it. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self.line.settimeout(timeout)
            try:
                told = self.line.recv(64)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
            self.line.close()
            # Without its parent a child is killed by nobody: whoever asks then must not wait for ever.
            self.returncode = int(told) if told else -signal.SIGKILL
        return self.returncode


@dataclass
class Nursery:
    """Where processes are started from."""

    address: str

    @classmethod
    @contextmanager
    def running(cls) -> "Iterator[Nursery]":
        with TemporaryDirectory(prefix="holdfast-nursery-") as directory:
            address = f"{directory}/socket"
            with subprocess.Popen(
                [sys.executable, "-m", "tests.support.nursery", address],
                cwd=PROJECT, env=_bare_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            ) as parent:  # fmt: skip
                try:
                    assert parent.stdout is not None
                    assert parent.stdout.readline() == b"ready\n", "the nursery did not start"
                    yield cls(address)
                finally:
                    parent.kill()

    def start(
        self,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        output: Path,
        errors: Path | None = None,
    ) -> Child:
        """Begin ``python ARGUMENTS`` in the project's directory; what it prints is added to ``output``."""
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(_PATIENCE_SECONDS)
        line.connect(self.address)
        asked = {
            "arguments": list(arguments), "environ": dict(environ),
            "output": str(output), "errors": str(errors or output),
        }  # fmt: skip
        line.sendall(json.dumps(asked).encode() + b"\n")
        told = line.recv(_PID_WIDTH, socket.MSG_WAITALL)
        if not told:
            raise RuntimeError("the nursery is gone")
        return Child(pid=int(told), line=line)


def _bare_environ() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"PYTHONPATH": str(PROJECT)}


# The parent


@dataclass
class _Parent:
    listener: socket.socket
    wakeup: socket.socket
    waker: socket.socket
    lines: dict[int, socket.socket] = field(default_factory=dict)
    """The line of each living child."""

    def serve(self) -> None:
        chosen = selectors.SelectSelector()  # which has no descriptor of its own
        chosen.register(self.listener, selectors.EVENT_READ)
        chosen.register(self.wakeup, selectors.EVENT_READ)
        chosen.register(sys.stdin.buffer, selectors.EVENT_READ)
        while True:
            for key, _ in chosen.select():
                if key.fileobj is self.listener:
                    self._start()
                elif key.fileobj is self.wakeup:
                    self.wakeup.recv(4096)
                    self._reap()
                else:
                    return  # whoever wanted the children is gone

    def _start(self) -> None:
        line, _ = self.listener.accept()
        asked = b""
        while not asked.endswith(b"\n"):
            got = line.recv(65536)
            if not got:
                line.close()
                return
            asked += got
        pid = os.fork()
        if pid == 0:
            self._become(json.loads(asked), line)
        self.lines[pid] = line
        line.sendall(f"{pid:{_PID_WIDTH}}".encode())

    def _become(self, asked: Mapping[str, Any], line: socket.socket) -> NoReturn:
        """In the child: it ends where its command ends, or raises what its command raises."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for mine in (self.listener, self.wakeup, self.waker, line, *self.lines.values()):
            mine.close()
        _take_place(asked)
        _run(list(asked["arguments"]))
        sys.exit()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                line = self.lines.pop(pid)
                with line, contextlib.suppress(OSError):
                    line.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _take_place(asked: Mapping[str, Any]) -> None:
    """The session, the environment and the files that the process would have been started with."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, path in ((1, asked["output"]), (2, asked["errors"])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, target)
        os.close(opened)
    os.dup2(nothing, 0)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        cast("TextIOWrapper", stream).reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.path[:] = [
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
        *(path for path in sys.path if path not in ("", str(PROJECT))),
    ]


def _run(arguments: list[str]) -> None:
    """What ``python ARGUMENTS`` does."""
    sys.modules.pop(_SITE, None)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(_SITE)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(PROJECT))
        runpy.run_path(arguments[0], run_name="__main__")


def _learn() -> None:
    """Import all that the product imports and that reads no settings."""
    with TemporaryDirectory(prefix="holdfast-scout-") as directory:
        scouted = subprocess.run(
            [sys.executable, "-c", _SCOUT],
            cwd=PROJECT, env=_scout_environ(directory), capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
    for name in scouted:
        if not name.startswith((*_READ_SETTINGS, *_MAKE_LOOPS)) or name.startswith("schema"):
            # Without settings a module that reads them at its import fails, and is imported after the fork.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _scout_environ(directory: str) -> dict[str, str]:
    return _bare_environ() | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": f"sqlite:///{directory}/scout.sqlite3",
        "HOLDFAST_RUN_DIR": f"{directory}/run",
        "SECRET_KEY": "a key for tests only, of no value anywhere else",
    }


def _main(address: str) -> None:
    _learn()
    assert threading.active_count() == 1, "a fork would lose the other threads"
    assert "twisted.internet.reactor" not in sys.modules, "forks would share its descriptors"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    wakeup, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    os.write(1, b"ready\n")
    _Parent(listener, wakeup, waker).serve()


if __name__ == "__main__":
    _main(sys.argv[1])
