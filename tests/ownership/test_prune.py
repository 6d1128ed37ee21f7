"""Workers that ended long ago are forgotten, with their lock files; nothing that somebody may still need is."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app import ownership
from sessions_app.models import Worker
from sessions_app.ownership.lockfile import LockFile
from tests.sessions.test_delete import plan_of
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LONG_AGO = world.NOW - timedelta(days=1, seconds=1)
LATELY = world.NOW - timedelta(hours=23)


def prune(run_dir: Path) -> int:
    return ownership.prune(now=world.NOW, run_dir=run_dir)


def file_of(worker_id: str, run_dir: Path, *, made_at=LONG_AGO) -> Path:
    path = run_dir / f"{worker_id}.lock"
    path.touch()
    os.utime(path, (made_at.timestamp(), made_at.timestamp()))
    return path


def test_the_row_and_the_file_of_a_worker_that_ended_long_ago_are_gone(tmp_path: Path) -> None:
    stopped, dead = world.worker(stopped_at=LONG_AGO), world.worker(dead_at=LONG_AGO, death="proved")
    files = [file_of(each.pk, tmp_path) for each in (stopped, dead)]

    assert prune(tmp_path) == 2

    assert not Worker.objects.exists()
    assert not any(file.exists() for file in files)


def test_who_lives_or_ended_lately_stays_with_its_file(tmp_path: Path) -> None:
    kept = [world.worker(), world.worker(stopped_at=LATELY), world.worker(dead_at=LATELY, death="assumed")]
    files = [file_of(each.pk, tmp_path) for each in kept]
    before = world.rows_of(Worker)

    assert prune(tmp_path) == 0

    assert world.rows_of(Worker) == before
    assert all(file.exists() for file in files)


@pytest.mark.parametrize("column", ["owner_id", "recovering_id"])
def test_who_owns_or_recovers_a_session_stays_until_somebody_took_it_over(
    tmp_path: Path, column: str
) -> None:
    worker = world.worker(dead_at=LONG_AGO, death="proved")
    session_id = world.session()
    world.change(session_id, **{column: worker.pk})

    assert prune(tmp_path) == 0
    world.change(session_id, **{column: None})
    assert prune(tmp_path) == 1


def test_a_file_without_a_row_goes_unless_it_is_new_or_its_lock_is_held(tmp_path: Path) -> None:
    crashed, new = file_of("wrk_crashed", tmp_path), file_of("wrk_new", tmp_path, made_at=LATELY)
    other = tmp_path / "layer.sock"
    other.touch()
    os.utime(other, (0, 0))
    held = LockFile(tmp_path / "wrk_held.lock")
    os.utime(tmp_path / "wrk_held.lock", (0, 0))

    prune(tmp_path)

    left = {path.name for path in tmp_path.iterdir()}
    held.close()
    assert left == {new.name, other.name, "wrk_held.lock"}
    assert not crashed.exists()


def test_a_run_directory_out_of_reach_keeps_no_row(tmp_path: Path) -> None:
    world.worker(stopped_at=LONG_AGO)

    assert prune(tmp_path / "nowhere") == 1


def test_a_look_that_finds_nothing_is_one_statement_that_reads_no_session(tmp_path: Path) -> None:
    with CaptureQueriesContext(connection) as queries:
        prune(tmp_path)

    assert len(queries) == 1
    plan = plan_of(queries.captured_queries[0]["sql"])
    assert [line for line in plan if line.startswith("SCAN") and "worker" not in line] == []
