"""``python -m tests``: the whole suite on SQLite, beside it on PostgreSQL what promises to hold there too.

Arguments go to pytest. The run on PostgreSQL is shown when both are through. The last lines name and count what was skipped because the machine lacks it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import IO

from tests.support import servers

NO_TESTS = 5


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        skips = Path(directory) / "skips"
        runs = [_start("sqlite", skips)]
        if servers.is_there("postgresql"):
            shown_later = (Path(directory) / "postgres").open("w+b")
            runs.append(_start("postgres", skips, shown_later))
        print("=== sqlite ===", flush=True)
        codes = [run.wait() for run in runs]
        if len(runs) > 1:
            print("=== postgres ===", flush=True)
            shown_later.seek(0)
            shutil.copyfileobj(shown_later, sys.stdout.buffer)
            codes[1] = 0 if codes[1] == NO_TESTS else codes[1]
        missing = _missing(skips)
    if not servers.is_there("postgresql"):
        missing["the second run, on PostgreSQL: needs postgresql"] += 1
    return _report(missing) or max(codes)


def _start(database: str, skips: Path, output: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "HOLDFAST_TEST_DATABASE": database, "HOLDFAST_TEST_SKIPS": str(skips)}
    command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
    return subprocess.Popen(command, env=environ, stdout=output)


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
