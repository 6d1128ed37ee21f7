"""One supervised process: started in a session of its own, started again when it dies."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sessions_app.execution import lineage

FIRST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 10.0
STEADY_SECONDS: Final = 30.0
"""A process that lived this long starts again as promptly as the first time."""


@dataclass
class Child:
    name: str
    command: Sequence[str]
    directory: Path
    environ: Mapping[str, str]
    descriptors: Sequence[int] = ()
    stops_last: bool = False
    """Others need it until they have stopped."""
    process: subprocess.Popen[bytes] | None = None
    _started: float = 0.0
    _start_at: float = 0.0
    _deaths: int = field(default=0)

    def start(self) -> None:
        """Start it. The terminal's Ctrl-C does not reach it, and it does not outlive us (Linux)."""
        parent = os.getpid()
        self._started = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            cwd=self.directory,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            pass_fds=self.descriptors,
            start_new_session=True,
            # We have one thread, so nothing that this calls can be locked by another.
            preexec_fn=lambda: lineage.die_with_parent(parent),
        )

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def tend(self) -> str | None:
        """Note a death, or start again when the pause is over; returns what to tell the operator."""
        if self.is_alive():
            return None
        if self.process is not None:
            return self._bury(self.process)
        if time.monotonic() < self._start_at:
            return None
        self.start()
        return f"{self.name} started again"

    def _bury(self, process: subprocess.Popen[bytes]) -> str:
        self.kill()
        self.process = None
        steady = time.monotonic() - self._started > STEADY_SECONDS
        self._deaths = 1 if steady else self._deaths + 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** (self._deaths - 1), LONGEST_PAUSE_SECONDS)
        self._start_at = time.monotonic() + pause
        return f"{self.name} {_how_it_ended(process.returncode)}; it starts again in {pause:g} s"

    def terminate(self) -> None:
        """Ask the main process to stop; it tells its own."""
        if self.process is not None and self.is_alive():
            self.process.terminate()

    def kill(self) -> None:
        """Kill it and all that it started."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def wait(self) -> None:
        """Wait for the end of one that was killed."""
        if self.process is not None:
            self.process.wait()

    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()


def _how_it_ended(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
