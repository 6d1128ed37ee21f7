"""``python -m tests``: the whole suite on SQLite, then on PostgreSQL the tests that promise to hold there too.

Arguments go to pytest. The last lines name and count what was skipped because the machine lacks it.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support import servers

NO_TESTS = 5


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        skips = Path(directory) / "skips"
        codes = [_run("sqlite", skips)]
        if servers.is_there("postgresql"):
            codes.append(_run("postgres", skips))
        missing = _missing(skips)
    if not servers.is_there("postgresql"):
        missing["the second run, on PostgreSQL: needs postgresql"] += 1
    return _report(missing) or max(codes)


def _run(database: str, skips: Path) -> int:
    print(f"=== {database} ===", flush=True)
    environ = {**os.environ, "HOLDFAST_TEST_DATABASE": database, "HOLDFAST_TEST_SKIPS": str(skips)}
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *sys.argv[1:]], env=environ, check=False
    ).returncode
    return 0 if code == NO_TESTS and database == "postgres" else code


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
