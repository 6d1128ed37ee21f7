"""Processes that the nursery starts are processes like any other."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nursery import Nursery
from tests.support.waiting import until


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery.running() as nursery:
        yield nursery


@pytest.fixture
def start(nursery: Nursery, tmp_path: Path) -> Any:
    def started(code: str, **environ: str) -> Any:
        (tmp_path / "program.py").write_text(code)
        return nursery.start(
            [str(tmp_path / "program.py")], environ=environ, output=tmp_path / "out", errors=tmp_path / "err"
        )

    return started


def test_a_process_has_its_own_environment_and_session_and_ends_as_it_says(
    start: Any, tmp_path: Path
) -> None:
    child = start(
        "import os, sys\n"
        "print(dict(os.environ), os.getsid(0) == os.getpid(), sys.stdin.read())\n"
        "print('oh', file=sys.stderr)\n"
        "sys.exit(3)\n",
        ONLY="this",
    )

    assert child.wait(timeout=30) == child.poll() == 3
    assert (tmp_path / "out").read_text() == "{'ONLY': 'this'} True \n"
    assert (tmp_path / "err").read_text() == "oh\n"


def test_a_process_that_raises_says_so(start: Any, tmp_path: Path) -> None:
    child = start("1 / 0")

    assert child.wait(timeout=30) == 1
    assert "ZeroDivisionError" in (tmp_path / "err").read_text()


def test_a_process_that_is_killed_is_told_as_killed(start: Any, tmp_path: Path) -> None:
    child = start("import time\nprint('here')\nwhile True: time.sleep(1)")
    until((tmp_path / "out").exists, what="its beginning")
    assert child.poll() is None

    child.send_signal(signal.SIGKILL)

    assert child.wait(timeout=30) == -signal.SIGKILL


def test_nothing_of_the_product_that_reads_settings_is_there_before_the_process_begins(
    start: Any, tmp_path: Path
) -> None:
    child = start(
        "import sys\n"
        "from django.conf import settings\n"
        "print([name for name in sys.modules if name.startswith(('sessions_app', 'recovery', 'config'))])\n"
        "print(settings.configured, 'django.db.models' in sys.modules, len(sys.modules) > 500)\n"
    )

    assert child.wait(timeout=30) == 0
    assert (tmp_path / "out").read_text() == "[]\nFalse True True\n"
