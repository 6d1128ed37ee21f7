"""Recovery when a web server starts: once, in the background, and nowhere else."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from recovery import startup
from sessions_app.models import Worker
from tests.recovery import crowds
from tests.recovery.losses import Lost
from tests.support import world
from tests.support.processes import PROJECT


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[str]:
    """The names of the threads that were begun; as if this process had just been started to serve."""
    settings.HOLDFAST_ROLE, settings.HOLDFAST_STARTUP_RECOVERY = "web", True
    monkeypatch.setattr(startup, "_once", threading.Lock())
    names: list[str] = []

    class Recorded(threading.Thread):
        def start(self) -> None:
            names.append(self.name)
            assert self.daemon, "an ending process does not wait for it"

    monkeypatch.setattr(threading, "Thread", Recorded)
    return names


def test_a_web_server_looks_once_in_the_background(begun: list[str]) -> None:
    startup.start()
    startup.start()

    assert begun == ["startup-recovery"]


@pytest.mark.parametrize("role", ["", "worker", "command"])
def test_what_does_not_serve_looks_at_nothing(begun: list[str], settings: Any, role: str) -> None:
    settings.HOLDFAST_ROLE = role

    startup.start()

    assert begun == []


def test_it_can_be_turned_off(begun: list[str], settings: Any) -> None:
    settings.HOLDFAST_STARTUP_RECOVERY = False

    startup.start()

    assert begun == []


@pytest.mark.django_db
def test_proved_deaths_are_recovered_at_once_and_the_others_left_to_the_sweep(
    settings: Any, tmp_path: Path
) -> None:
    settings.HOLDFAST_RUN_DIR = tmp_path
    killed = Lost(owner=crowds.killed_worker(tmp_path).pk).streaming().text()
    undetermined = Lost().streaming().text()
    before = world.everything_of(undetermined.id)

    startup.recover_now(kind="web")

    assert [claim.death for claim in killed.claims()] == ["proved"]
    assert world.wakes() == [killed.id]
    assert world.everything_of(undetermined.id) == before
    (me,) = Worker.objects.filter(kind="web")
    assert me.stopped_at is not None


@pytest.mark.parametrize("error", [OperationalError("no such table"), ValueError("anything")])
def test_nothing_that_goes_wrong_in_it_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(**_: Any) -> None:
        raise error

    monkeypatch.setattr(startup, "recover_now", fails)
    monkeypatch.setattr(connections, "close_all", lambda: None)

    startup._run()


@pytest.mark.parametrize(
    ("role", "says"), [("web", "recovery.startup.skipped"), ("", "")], ids=["serving", "a command"]
)
def test_a_process_on_a_database_without_tables_starts_all_the_same(
    tmp_path: Path, role: str, says: str
) -> None:
    code = (
        "import threading, django; django.setup();"
        "[each.join() for each in threading.enumerate() if each.name == 'startup-recovery'];"
        "print('started')"
    )
    environ = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3",
        "HOLDFAST_RUN_DIR": str(tmp_path / "run"), "HOLDFAST_ROLE": role, "HOLDFAST_STARTUP_RECOVERY": "1",
    }  # fmt: skip

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=environ, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "started\n")
    assert says in done.stderr
    assert ("recovery." in done.stderr) == bool(says)
