"""Runs the product as a user does: real processes with a directory, a database and a port of their own.

    with Instance.prepare(tmp_path) as instance:
        instance.start()                       # manage.py up, waits until it answers
        token = instance.manage("create_api_token", "ann").stdout.strip()
        instance.request("POST", "/api/v1/sessions", {}, token=token)
        instance.kill("worker")                # kill -9 of one named process
        assert instance.stop() == 0

Every process that descends from an instance is found, also an orphan: all inherit a mark in their
environment. Leaving the ``with`` block kills whatever is left.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.support.waiting import until

PROJECT: Final = Path(__file__).resolve().parent.parent.parent
_MARK: Final = "HOLDFAST_TEST_INSTANCE"

ROLES: Final = {
    "hf-up": "up",
    "hf-cluster": "cluster",
    "hf-sentinel": "sentinel",
    "hf-worker": "worker",
    "hf-monitor": "monitor",
    "hf-pusher": "pusher",
    "hf-model": "model",
}
"""How a process names itself to the kernel, and what it is called here; the web server is told by its command."""


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    role: str
    """up, web, cluster (main of the workers), sentinel, worker, monitor, pusher, model, or other."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Instance:
    """One installation. Make it with ``prepare``."""

    directory: Path
    environ: dict[str, str]
    port: int
    mark: str
    up: subprocess.Popen[bytes] | None = None
    others: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def prepare(cls, directory: Path, *, database_url: str = "", **environ: str) -> Iterator["Instance"]:
        """An instance that is not started yet; SQLite in its directory unless ``database_url`` is given.

        Keyword arguments are variables of its environment (``HOLDFAST_GRACE_SECONDS="3"``).
        """
        mark = uuid4().hex
        inherited = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ
        }
        variables = {
            "DATABASE_URL": database_url or f"sqlite:///{directory}/holdfast.sqlite3",
            "HOLDFAST_RUN_DIR": str(directory / "run"),
            "SECRET_KEY": "a key for tests only, of no value anywhere else",
            "HOLDFAST_LOCAL_MODEL": "0",
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            _MARK: mark,
        }
        instance = cls(
            directory=directory, environ=inherited | variables | environ, port=free_port(), mark=mark
        )
        try:
            yield instance
        finally:
            instance.kill_everything()

    # --- starting and stopping ---------------------------------------------------------------------

    def start(self, *arguments: str, workers: int = 1, wait: bool = True) -> None:
        """``manage.py up`` on this instance's port; returns once it says that it serves."""
        count = () if "--web-only" in arguments else ("--workers", str(workers))
        before = len(self.output)
        self.up = self.spawn("up", "--port", str(self.port), *count, *arguments)
        if wait:
            until(
                lambda: self._says_ready(before), within=60, what=f"ready in the output of up\n{self.output}"
            )

    def spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A management command in the background, in a session of its own, writing to ``output``."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=PROJECT, env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self.others.append(process)
        return process

    def manage(self, *arguments: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a management command to its end; with ``check`` it must end with 0."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT, env=self.environ | environ, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{arguments} ended with {done.returncode}\n{done.stderr}"
        return done

    def stop(self, number: signal.Signals = signal.SIGTERM, *, within: float = 30) -> int:
        """Signal ``up`` alone and return its exit code."""
        assert self.up is not None, "the instance was not started"
        self.up.send_signal(number)
        return self.up.wait(timeout=within)

    def kill_everything(self) -> None:
        """kill -9 of every process that carries the mark."""
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for process in left:
                _signal(process.pid, signal.SIGKILL)
            for child in self.others:
                child.poll()
        for child in self.others:
            child.wait(timeout=10)

    def _says_ready(self, before: int) -> bool:
        assert self.up is not None
        code = self.up.poll()
        assert code is None, f"up ended with {code}\n{self.output}"
        return "Ready in" in self.output[before:]

    # --- looking ---------------------------------------------------------------------------------------

    @property
    def log(self) -> Path:
        return self.directory / "output.log"

    @property
    def output(self) -> str:
        """All that the instance's background processes have printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def processes(self, role: str | None = None) -> list[Process]:
        """The living processes of this instance, orphans included, by pid; zombies do not live."""
        found = (
            _look(int(entry.name), self.mark) for entry in Path("/proc").iterdir() if entry.name.isdigit()
        )
        return sorted(
            (process for process in found if process and role in (None, process.role)),
            key=lambda each: each.pid,
        )

    def pid(self, role: str) -> int:
        """The pid of the oldest living process of this role, which must be there soon."""
        return until(lambda: self.processes(role), within=20, what=f"a process {role!r}")[0].pid

    # --- acting ----------------------------------------------------------------------------------------

    def kill(self, role: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Signal one process of this role; returns its pid."""
        pid = self.pid(role)
        _signal(pid, number)
        return pid

    def kill_process(self, process: Process, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal a process that ``processes`` found."""
        _signal(process.pid, number)

    def request(
        self, method: str, path: str, body: Any = None, *, token: str = "", timeout: float = 15
    ) -> Response:
        """One HTTP request; ``body`` is sent as JSON."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Token {token}"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return Response(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _look(pid: int, mark: str) -> Process | None:
    directory = Path("/proc") / str(pid)
    try:
        if f"{_MARK}={mark}".encode() not in (directory / "environ").read_bytes().split(b"\0"):
            return None
        name, rest = (directory / "stat").read_text().partition("(")[2].rsplit(")", 1)
        command = (directory / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    state, parent, *_ = rest.split()
    if state in "ZX":
        return None
    role = "web" if b"daphne" in command else ROLES.get(name, "other")
    return Process(pid=pid, parent=int(parent), role=role)
