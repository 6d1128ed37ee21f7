"""``manage.py migrate``, which also puts a SQLite file into WAL mode."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections


class Command(migrate.Command):
    """Django's command, and before it the one switch of SQLite's journal that lasts.

    The switch is here and not in each connection, because processes that race for it are refused.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA journal_mode=WAL")
        super().handle(*args, **options)
