"""Deleting a session: nothing of it can be read anywhere, and none of its ids is free."""

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app import identity, sessions
from sessions_app.log import SessionGone
from sessions_app.models import PartCheckpoint, Session, SessionNote, Tombstone, ToolOverflow
from tests.log.stories import Story
from tests.log.test_replay import A_WHOLE_LIFE
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

SECRET = "a-secret-that-was-told"


def lived() -> str:
    story = Story(user_id=world.user(), worker_id=world.worker().pk)
    story.play(A_WHOLE_LIFE)
    world.prompt(story.session_id, SECRET)
    assert PartCheckpoint.objects.filter(part__session_id=story.session_id).exists()
    ToolOverflow.objects.create(
        id="ovf_secret",
        session_id=story.session_id,
        created_at=world.NOW,
        content=SECRET.encode(),
        is_text=True,
    )
    SessionNote.objects.create(session_id=story.session_id, name="n", text=SECRET, updated_at=world.NOW)
    return story.session_id


def delete(session_id: str) -> None:
    sessions.delete(session_id=session_id, now=world.after(3600))


def tables_that_hold(text: str) -> set[str]:
    """Every table of the database in which a row holds the text in any column."""
    found = set()
    with connection.cursor() as cursor:
        for model in apps.get_models():
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            if any(text in str(column) for row in cursor.fetchall() for column in row):
                found.add(model.__name__)
    return found


def test_what_was_said_is_in_no_table_any_more() -> None:
    session_id = lived()
    assert "SessionInput" in tables_that_hold(SECRET)

    delete(session_id)

    assert tables_that_hold(SECRET) == set()
    assert all(rows == [] for rows in world.everything_of(session_id).values())
    assert tables_that_hold("Text 2") == set()
    assert tables_that_hold(session_id) <= {"Tombstone", "OrmQ"}


def test_every_id_that_a_client_could_send_again_stays_taken() -> None:
    session_id = lived()
    rows = world.everything_of(session_id)
    ids = {
        session_id,
        *(row["id"] for name in ("SessionInput", "SessionMessage", "ProviderAttempt") for row in rows[name]),
    }

    delete(session_id)

    assert set(Tombstone.objects.values_list("pk", flat=True)) == ids
    assert set(Tombstone.objects.values_list("deleted_at", flat=True)) == {world.after(3600)}


def test_other_sessions_of_the_same_user_keep_everything() -> None:
    user_id = world.user()
    session_id, kept = world.session(user_id=user_id), world.session(user_id=user_id)
    world.prompt(session_id)
    world.prompt(kept, SECRET)
    before = world.everything_of(kept)

    delete(session_id)

    assert world.everything_of(kept) == before
    assert list(Session.objects.values_list("pk", flat=True)) == [kept]


def test_its_owner_learns_that_it_is_gone_and_writes_nothing() -> None:
    held = world.owned()
    delete(held.session_id)

    with pytest.raises(SessionGone), world.transaction(held):
        pytest.fail("the body ran for a session that is gone")

    assert not Session.objects.exists()


def test_deleting_again_says_that_it_is_gone() -> None:
    session_id = world.session()
    delete(session_id)

    for gone in (session_id, identity.new_session_id()):
        with pytest.raises(SessionGone):
            delete(gone)
    assert Tombstone.objects.count() == 1


def test_what_a_deletion_costs_grows_with_the_session_and_not_with_its_neighbours() -> None:
    session_id = lived()
    with CaptureQueriesContext(connection) as queries:
        delete(session_id)

    wholly_read = {
        line
        for query in queries.captured_queries
        if query["sql"].startswith(("SELECT", "UPDATE", "DELETE"))
        for line in plan_of(query["sql"])
        if line.startswith("SCAN") and "INDEX" not in line and " sessions_app_" in line
    }

    assert wholly_read == set()


def plan_of(statement: str) -> list[str]:
    """How SQLite goes about it; PostgreSQL reads small tables wholly whatever indexes there are."""
    if connection.vendor != "sqlite":
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return [row[3] for row in cursor.fetchall()]
