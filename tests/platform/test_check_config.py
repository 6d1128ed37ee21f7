"""check_config: every variable, every connection, one line each, and exit codes that a script can use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.support import servers, world
from tests.support.processes import PROJECT, free_port
from tests.support.requirements import requires

pytestmark = pytest.mark.django_db


def run(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": "a key for tests only, of no value anywhere else",
        "DATABASE_URL": f"sqlite:///{tmp_path}/a.sqlite3",
        "HOLDFAST_RUN_DIR": str(tmp_path / "run"),
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT, env=variables | environ, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What is told, by what it is about, with its grade in front."""
    split = (line.split("  ", 1) for line in done.stdout.splitlines()[:-1])
    return {(words := " ".join(line)).split(None, 1)[1][:31].strip(): words for line in split}


def test_an_installation_in_order_has_nothing_to_say(tmp_path: Path) -> None:
    assert run(tmp_path, "migrate", "-v", "0").returncode == 0

    done = run(tmp_path, "check_config", "--strict")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("0 wrong, 0 doubtful, ")
    assert lines(done)["journal"].endswith("WAL")


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = run(tmp_path, "check_config", "--quiet")

    assert done.returncode == 1
    assert "is not there yet: run python manage.py migrate" in lines(done)["database"]
    assert not (tmp_path / "a.sqlite3").exists()


def test_every_malformed_variable_is_named_at_once(tmp_path: Path) -> None:
    done = run(
        tmp_path, "check_config", DEBUG="maybe", HOLDFAST_SWEEP_SECONDS="soon", HOLDFAST_LEASE_SECONDS="1"
    )

    assert done.returncode == 2
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == [
        "DEBUG",
        "HOLDFAST_SWEEP_SECONDS",
        "HOLDFAST_LEASE_SECONDS",
    ]


def test_what_is_out_of_reach_is_told_and_the_rest_is_looked_at_all_the_same(tmp_path: Path) -> None:
    port = free_port()
    done = run(
        tmp_path, "check_config", "--quiet",
        DATABASE_URL=f"postgres://ann:hunter2@127.0.0.1:{port}/chat",
        REDIS_URL=f"redis://:hunter2@127.0.0.1:{port}/0",
        OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1",
        HOLDFAST_MCP_COMMANDS="files=no-such-program-anywhere",
        HOLDFAST_DEFAULT_MODEL="anthropic:some-model",
        HOLDFAST_MISSPELT="1",
    )  # fmt: skip
    told = lines(done)

    assert done.returncode == 1
    assert {what: line[:4].strip() for what, line in told.items()} == {
        "HOLDFAST_MISSPELT": "warn",
        "database": "bad",
        "channel layer": "bad",
        "cache": "bad",
        "default model": "bad",
        "openai": "warn",
        "openai-responses": "warn",
        "MCP command files": "bad",
    }
    assert "hunter2" not in done.stdout + done.stderr


@requires("postgresql", "redis")
def test_the_scaled_installation_is_tried_for_real(tmp_path: Path) -> None:
    done = run(tmp_path, "check_config", DATABASE_URL=servers.postgres_url(), REDIS_URL=servers.redis_url())

    assert lines(done)["channel layer"].startswith("ok")
    assert lines(done)["cache"].startswith("ok")
    assert lines(done)["database"].startswith("ok")


def test_sqlite_under_workers_of_several_hosts_is_wrong(capsys) -> None:
    world.worker(host="a")
    world.worker(host="b")

    with pytest.raises(SystemExit) as ended:
        call_command("check_config", "--quiet")

    assert ended.value.code == 1
    assert "several hosts use one SQLite file: a, b" in capsys.readouterr().out
