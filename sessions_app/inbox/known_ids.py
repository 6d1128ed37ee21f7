"""What an id is known for: one bare statement over every table that holds ids."""

from typing import Final

from django.db import connection

from sessions_app.models import SessionInput, SessionMessage, Tombstone

# The ORM takes longer to compile these three look-ups than the database to answer them, and every
# admission asks.
_STATEMENT: Final = " UNION ALL ".join(
    f"SELECT '{kind}' FROM {table._meta.db_table} WHERE id = %s"  # noqa: S608, SLF001 - names of ours, value bound
    for kind, table in (("input", SessionInput), ("message", SessionMessage), ("tombstone", Tombstone))
)


def kinds_of(message_id: str) -> set[str]:
    """Any of input, message, tombstone; empty for an id that is free."""
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENT, [message_id] * 3)
        return {kind for (kind,) in cursor.fetchall()}
