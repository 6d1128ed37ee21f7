"""The processes of one run: a web server and workers, killed and started as the script wants it."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from tests.crash import databases
from tests.crash.wrapping import DIRECTORY, MUTATION, POINT, PROJECT
from tests.support.nursery import Child, Nursery
from tests.support.processes import free_port
from tests.support.waiting import until

PATIENCE_SECONDS: Final = 90.0
"""How long a busy machine may take for anything the script waits for."""

QUICK: Final = {
    "HOLDFAST_HEARTBEAT_SECONDS": "1",
    "HOLDFAST_LEASE_SECONDS": "8",
    "HOLDFAST_SWEEP_SECONDS": "0.5",
    "HOLDFAST_CHECKPOINT_SECONDS": "0.3",
    "HOLDFAST_GRACE_SECONDS": "3",
    "HOLDFAST_DEFAULT_MODEL": "openai:stub",
    "HOLDFAST_TOOLS": "tests.crash.tools",
    "OPENAI_API_KEY": "none",
}


@dataclass(kw_only=True)
class House:
    """One installation on a database of its own. ``point`` is where one of its processes dies."""

    directory: Path
    nursery: Nursery
    url: str
    token: str
    provider_url: str
    point: str = ""
    mutation: str = ""
    more: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    web: Child | None = None
    workers: list[Child] = field(default_factory=list)
    is_mended: bool = False
    repeated: set[str] = field(default_factory=set)
    """Requests that were sent again, since no answer came."""
    _commands: "itertools.count[int]" = field(default_factory=itertools.count)

    def environ(self, role: str = "") -> dict[str, str]:
        variables = databases.environ(self.url, self.directory) | QUICK
        variables |= {
            "PYTHONPATH": f"{PROJECT}/tests/crash/children{os.pathsep}{PROJECT}",
            "OPENAI_BASE_URL": self.provider_url,
            DIRECTORY: str(self.directory),
        }
        if role:
            variables["HOLDFAST_ROLE"] = role
        if self.point and not self.was_killed():
            variables[POINT] = self.point
        if self.mutation:
            variables[MUTATION] = self.mutation
        return variables | self.more

    # Starting and ending

    def start(self, *, workers: int = 1) -> None:
        self.start_web()
        for _ in range(workers):
            self.start_workers()

    def start_web(self) -> None:
        self.web = self._spawn(
            "web",
            *("-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port), "-v", "0", "--no-server-name"),
            "config.asgi:application",
        )

    def start_workers(self) -> None:
        self.workers.append(self._spawn("worker", "manage.py", "drain_worker", "--workers", "1"))

    def _spawn(self, role: str, *arguments: str) -> Child:
        return self.nursery.start(arguments, environ=self.environ(role), output=self.directory / "output")

    def kill_web(self) -> None:
        if self.web is not None:
            _end(self.web, signal.SIGKILL)
            self.web = None

    def kill_workers(self) -> None:
        """kill -9 of every process of every cluster."""
        while self.workers:
            _end(self.workers.pop(), signal.SIGKILL)

    def stop_workers(self) -> None:
        """SIGTERM, and wait until they have released what they had."""
        for running in self.workers:
            running.send_signal(signal.SIGTERM)
        for running in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(timeout=30)
        self.kill_workers()

    def kill(self) -> None:
        self.kill_web()
        self.kill_workers()

    # The crash

    def was_killed(self) -> bool:
        return (self.directory / "killed").exists()

    def mend(self) -> bool:
        """Once, when a process died at the point: kill the others too and start all of them new."""
        if self.is_mended or not self.was_killed():
            return False
        self.is_mended = True
        self.kill()
        self.start()
        return True

    def run(self, *arguments: str) -> str:
        """A command as a process of its own; once more if it died at the point. Returns what it printed."""
        while True:
            try:
                done = self._run(arguments)
            except subprocess.TimeoutExpired as late:
                raise AssertionError(f"{arguments} did not end") from late
            if not self.mend():
                return done

    def _run(self, arguments: tuple[str, ...]) -> str:
        printed = self.directory / f"printed-{next(self._commands)}"
        self.nursery.start(
            arguments, environ=self.environ(), output=printed, errors=self.directory / "output"
        ).wait(timeout=120)
        return printed.read_text()

    # Asking

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, repeated as it is until it is answered."""
        tries = 0

        def ask() -> tuple[int, Any] | None:
            nonlocal tries
            tries += 1
            return self._try(method, path, body)

        answer = until(ask, within=PATIENCE_SECONDS, what=f"an answer to {method} {path}")
        assert answer is not None
        if tries > 1:
            self.repeated.add(f"{method} {path}")
        return answer

    def _try(self, method: str, path: str, body: Any) -> tuple[int, Any] | None:
        self.mend()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()
        is_json = "json" in (answer.getheader("content-type") or "")
        return answer.status, (json.loads(data) if is_json else data.decode(errors="replace")[:200])

    # Looking

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of the commits' journal or of the ledger."""
        path = self.directory / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def commits(self) -> int:
        path = self.directory / "counter"
        return int(path.read_text() or 0) if path.exists() else 0

    def open_gate(self, name: str) -> None:
        (self.directory / f"gate-{name}").touch()

    @property
    def output(self) -> str:
        path = self.directory / "output"
        return path.read_text(errors="replace") if path.exists() else ""


def _end(running: Child, number: signal.Signals) -> None:
    try:
        os.killpg(running.pid, number)
    except ProcessLookupError:
        # It ended by itself, or has just been born: then it is no leader of a group yet, and alone.
        running.send_signal(number)
    running.wait()
