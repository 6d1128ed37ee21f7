"""Retention by age: what is old goes wholly, what is in use stays, what was to be kept is kept first."""

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task

from recovery.models import RecoveryClaim
from sessions_app.models import Session, SessionNote, Tombstone, ToolOverflow
from tests.recovery import losses
from tests.support import world

# Sessions are made old in their rows alone.
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases, pytest.mark.rows_of_its_own]

PROBE = "probe-5f1c"


def old_session(*, days: int = 40, **columns: Any) -> str:
    session_id = world.session()
    world.prompt(session_id, PROBE)
    world.change(session_id, active_at=timezone.now() - timedelta(days=days), **columns)
    return session_id


def purge(*arguments: str) -> str:
    out = StringIO()
    call_command("purge_sessions", "--older-than", "30", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def ids() -> set[str]:
    return set(Session.objects.values_list("pk", flat=True))


def test_what_is_older_goes_and_what_is_younger_stays() -> None:
    old, young = old_session(days=31), old_session(days=29)
    before = world.everything_of(young)

    assert "1 sessions were purged." in purge()

    assert ids() == {young}
    assert world.everything_of(young) == before
    assert Tombstone.objects.filter(pk=old).exists()


def test_archived_only_leaves_the_others() -> None:
    old_session(archived=True)
    kept = old_session()

    purge("--archived-only")

    assert ids() == {kept}


def test_a_dry_run_names_them_and_changes_nothing() -> None:
    old = old_session()
    before = world.everything_of(old)

    said = purge("--dry-run")

    assert old in said
    assert "1 sessions would be purged." in said
    assert world.everything_of(old) == before


def test_a_session_that_a_worker_drains_is_left_alone() -> None:
    held = world.owned()
    world.change(held.session_id, active_at=timezone.now() - timedelta(days=99))

    assert "0 sessions were purged, 1 in use were left alone." in purge()
    assert ids() == {held.session_id}


def test_a_prompt_that_comes_after_the_look_keeps_its_session(tmp_path: Path, monkeypatch) -> None:
    old = old_session()
    monkeypatch.setattr(
        "sessions_app.sessions.export.write", lambda *_, **__: [world.prompt(old, "I am back")][:0]
    )

    assert "0 sessions were purged, 1 in use were left alone." in purge("--export-to", str(tmp_path))
    assert ids() == {old}


def test_each_is_exported_before_it_goes_for_its_owner_alone(tmp_path: Path) -> None:
    old = old_session()

    purge("--export-to", str(tmp_path))

    (kept,) = tmp_path.iterdir()
    assert kept.name == f"{old}.json"
    assert PROBE in json.dumps(json.loads(kept.read_text()))
    assert kept.stat().st_mode & 0o077 == 0
    assert ids() == set()


def test_what_cannot_be_exported_stays_and_the_others_go(tmp_path: Path) -> None:
    stuck, free = sorted([old_session(), old_session()])
    (tmp_path / f"{stuck}.json").mkdir()

    with pytest.raises(SystemExit) as ended:
        purge("--export-to", str(tmp_path))

    assert ended.value.code == 1
    assert ids() == {stuck}
    assert (tmp_path / f"{free}.json").exists()


@pytest.mark.parametrize("age", ["0", "-1", "many", "1.5", "\u0663"])
def test_an_age_that_is_none_purges_nothing(age: str) -> None:
    old = old_session()

    with pytest.raises(CommandError, match="number of days"):
        call_command("purge_sessions", f"--older-than={age}")

    assert ids() == {old}


def test_after_a_whole_life_with_a_crash_nothing_in_the_database_holds_what_was_said() -> None:
    lost = losses.Lost(owner=world.worker(dead_at=world.NOW, death="proved").pk, title=PROBE)
    lost.streaming().text(PROBE)
    lost.call(PROBE, effect="side_effect")
    losses.sweep()
    world.prompt(lost.id, PROBE)
    ToolOverflow.objects.create(
        id="ovf_1", session_id=lost.id, created_at=world.NOW, content=PROBE.encode(), is_text=True
    )
    SessionNote.objects.create(session_id=lost.id, name=PROBE, text=PROBE, updated_at=world.NOW)
    assert RecoveryClaim.objects.filter(session_id=lost.id).exists()
    assert len(tables_with(PROBE)) >= 6
    world.change(lost.id, active_at=timezone.now() - timedelta(days=99), owner_id=None)

    purge()

    assert tables_with(PROBE) == set()
    assert tables_with(lost.id) <= {"sessions_app_tombstone", "django_q_ormq"}


def tables_with(text: str) -> set[str]:
    """Every table of the database, the framework's and the queue's included, that holds the text anywhere."""
    return {
        table for table in connection.introspection.table_names() if any(text in row for row in rows(table))
    }


def rows(table: str) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}"')
        for row in cursor.fetchall():
            yield " ".join(_readable(column) for column in row)
    if table == OrmQ._meta.db_table:
        yield from (str(queued.task) for queued in OrmQ.objects.all())
    assert not Task.objects.exists()
    assert not Schedule.objects.exists()


def _readable(column: Any) -> str:
    if isinstance(column, memoryview | bytes):
        return bytes(column).decode("utf-8", "replace")
    return str(column)


def test_pickled_payloads_are_looked_into() -> None:
    """What the queue stores is encoded: the scan above would be blind without decoding it."""
    old = old_session()

    assert "django_q_ormq" in tables_with(old)
