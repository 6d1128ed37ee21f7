"""The totals of all processes, in one table."""

import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from django.db import DatabaseError, InterfaceError, connection

from sessions_app.figures import tally
from sessions_app.models import Figure

logger = logging.getLogger(__name__)

_TABLE: Final = Figure._meta.db_table  # noqa: SLF001


def store() -> None:
    """Add what this process counted to the totals, in one statement; one that fails is made up for later.

    Names come sorted, so that two processes that add at once wait for each other in the same order.
    """
    totals = tally.take()
    if not totals:
        return
    values = ", ".join(["(%s, %s)"] * len(totals))
    statement = (
        f"INSERT INTO {_TABLE} (name, value) VALUES {values} "  # noqa: S608 - a name of ours
        f"ON CONFLICT (name) DO UPDATE SET value = {_TABLE}.value + excluded.value"
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, [part for item in sorted(totals.items()) for part in item])
    except (DatabaseError, InterfaceError) as failed:
        tally.put_back(totals)
        logger.warning("figures.not_stored", extra={"error": type(failed).__name__})


def read() -> Mapping[str, Mapping[str, float]]:
    """Totals by name and label."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for figure in Figure.objects.all():
        name, _, label = figure.name.partition("/")
        found[name][label] = figure.value
    return found
