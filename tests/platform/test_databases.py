"""The database that a run of the suite uses is the real thing."""

import pytest
from django.db import connection


@pytest.mark.django_db
@pytest.mark.both_databases
def test_it_stores():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


@pytest.mark.django_db
def test_migrate_leaves_sqlite_in_wal():
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
