"""The stub provider as a process of its own, for a test whose product runs on other loops."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from tests.support import stub_provider
from tests.support.processes import PROJECT
from tests.support.stub_provider import Entry, Script
from tests.support.waiting import until


@dataclass(frozen=True)
class StubProcess:
    """A running stub."""

    url: str

    @classmethod
    @contextmanager
    def running(cls, port: int) -> Iterator[Self]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stub_provider", "--port", str(port)],
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
        )
        stub = cls(f"http://127.0.0.1:{port}")
        try:
            until(stub._answers, what="the stub answers")
            yield stub
        finally:
            process.kill()
            process.wait()

    def script(self, *scripts: Script) -> None:
        """Answer the next requests like this, one script each."""
        stub_provider.remote_scripts(self.url, scripts)

    def reset(self) -> None:
        """Forget scripts and journal."""
        stub_provider.remote_reset(self.url)

    def journal(self) -> list[Entry]:
        return stub_provider.remote_journal(self.url)

    def _answers(self) -> bool:
        try:
            self.journal()
        except OSError:
            return False
        return True
