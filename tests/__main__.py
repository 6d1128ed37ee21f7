"""``python -m tests``: the whole suite on SQLite, and on PostgreSQL what promises to hold there too.

It runs in two lanes side by side, since much of it waits: for browsers, for processes, for PostgreSQL. With arguments,
which go to pytest, there is one lane for each database. The first part is shown while it runs, the others when they are
through. The last lines name and count what was skipped because the machine lacks it.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support import servers

NO_TESTS: Final = 5

BROWSERS: Final = ("browser",)
PROCESSES: Final = ("conversations", "crash", "fuzz", "operations", "platform", "recovery")
"""Folders whose tests start processes and wait for them."""

_printing: Final = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Part:
    """One run of pytest."""

    title: str
    database: str
    arguments: Sequence[str]
    is_shown_live: bool = False


def main() -> int:
    lanes = _lanes(sys.argv[1:])
    with tempfile.TemporaryDirectory() as directory:
        skips = Path(directory) / "skips"
        with ThreadPoolExecutor(len(lanes)) as pool:
            codes = list(pool.map(lambda lane: max(_run(part, skips) for part in lane), lanes))
        missing = _missing(skips)
    if not servers.is_there("postgresql"):
        missing["the second run, on PostgreSQL: needs postgresql"] += 1
    return _report(missing) or max(codes)


def _lanes(arguments: Sequence[str]) -> list[list[Part]]:
    given = Part(title="sqlite", database="sqlite", arguments=arguments, is_shown_live=True)
    postgres = [Part(title="postgres", database="postgres", arguments=arguments)]
    second = postgres if servers.is_there("postgresql") else []
    if arguments:
        return [lane for lane in ([given], second) if lane]
    elsewhere = [f"--ignore=tests/{name}" for name in (*BROWSERS, *PROCESSES)]
    rest = Part(title="sqlite", database="sqlite", arguments=["tests", *elsewhere], is_shown_live=True)
    return [[rest, _part_of("browsers", BROWSERS)], [*second, _part_of("processes", PROCESSES)]]


def _part_of(title: str, folders: Sequence[str]) -> Part:
    paths = [f"tests/{name}" for name in folders]
    return Part(title=f"sqlite, {title}", database="sqlite", arguments=paths)


def _run(part: Part, skips: Path) -> int:
    """The exit code of pytest, 0 where PostgreSQL had nothing to run."""
    environ = {**os.environ, "HOLDFAST_TEST_DATABASE": part.database, "HOLDFAST_TEST_SKIPS": str(skips)}
    command = [sys.executable, "-m", "pytest", *part.arguments]
    if part.is_shown_live:
        print(f"=== {part.title} ===", flush=True)
        return subprocess.run(command, env=environ, check=False).returncode
    ended = subprocess.run(command, env=environ, check=False, stdout=subprocess.PIPE)
    with _printing:
        print(f"=== {part.title} ===", flush=True)
        sys.stdout.buffer.write(ended.stdout)
        sys.stdout.flush()
    return 0 if ended.returncode == NO_TESTS and part.database == "postgres" else ended.returncode


def _missing(skips: Path) -> Counter[str]:
    lines = skips.read_text().splitlines() if skips.exists() else []
    return Counter(reason for line in lines for reason in json.loads(line))


def _report(missing: Counter[str]) -> int:
    """The last lines of the run; 1 where nothing may be skipped and something was."""
    for reason, count in sorted(missing.items()):
        print(f"skipped: {count} x {reason}")
    print(f"skipped because this machine lacks what they need: {missing.total()}")
    return int(os.environ.get("HOLDFAST_TEST_REQUIRE") == "all" and bool(missing))


if __name__ == "__main__":
    sys.exit(main())
