"""The npm package aimock: a mock of OpenAI and Anthropic that others wrote, with a journal of requests.

It is installed on demand next to its ``package.json`` in ``tests/aimock``, exactly as locked there.
"""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.processes import free_port
from tests.support.requirements import need
from tests.support.waiting import until

_PACKAGE: Final = Path(__file__).resolve().parent.parent / "aimock"
_PROGRAM: Final = _PACKAGE / "node_modules/@copilotkit/aimock/dist/cli.js"
_FIRST_FIXTURE: Final = {"match": {"userMessage": "hello"}, "response": {"content": "Hello."}}
"""It does not start without one."""


class Mock:
    """A running mock. Fixtures are tried in order; what matches none is answered 404."""

    def __init__(self, url: str) -> None:
        self.url = url

    def add(self, **fixture: Any) -> None:
        """``match``, ``response`` and options, as aimock documents them."""
        self._post("fixtures", {"fixtures": [fixture]})

    def fail_next(self, status: int, **body: str) -> None:
        """The next request gets this status and error."""
        self._post("error", {"status": status, "body": body})

    def reset(self) -> None:
        """Forget fixtures and journal."""
        self._post("reset", {})

    def journal(self) -> list[dict[str, Any]]:
        """Every request that arrived, also one still in flight."""
        entries: list[dict[str, Any]] = _call(f"{self.url}/__aimock/journal")
        return entries

    def _post(self, what: str, body: Any) -> None:
        _call(f"{self.url}/__aimock/{what}", body)


@contextmanager
def running(directory: Path) -> Iterator[Mock]:
    """Start the mock; ``directory`` holds its first fixture. Needs npm, see ``requirements``."""
    need("npm")
    _install()
    fixture = directory / "aimock.json"
    fixture.write_text(json.dumps({"fixtures": [_FIRST_FIXTURE]}))
    port = free_port()
    options = ["--port", str(port), "--fixtures", str(fixture), "--chunk-size", "8", "--latency", "5"]
    command = ["node", str(_PROGRAM), *options, "--strict", "--validate-on-load", "--log-level", "silent"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mock = Mock(f"http://127.0.0.1:{port}")
    try:
        until(lambda: _answers(mock), what="the mock answers")
        yield mock
    finally:
        process.kill()
        process.wait()


def _install() -> None:
    if not _PROGRAM.exists():
        command = ["npm", "ci", "--prefix", str(_PACKAGE), "--no-audit", "--no-fund"]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


def _answers(mock: Mock) -> bool:
    try:
        mock.journal()
    except OSError:
        return False
    return True


def _call(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as response:
        return json.loads(response.read())
