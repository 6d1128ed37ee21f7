"""How each role connects to each database."""

from typing import Any, Final

from config.env import PostgreSQL, Role, SQLite

SQLITE_OPTIONS: Final = {
    # A transaction that reads first and writes later fails at once in the default mode when another
    # process wrote meanwhile; one that takes the write lock at its start waits for its turn.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: what was acknowledged survives a power loss. WAL is set by migrate, once and alone,
    # because processes that race for the first switch get "database is locked".
    "init_command": "PRAGMA synchronous=FULL",
}

WEB_POOL: Final = {"min_size": 1, "max_size": 8, "timeout": 20}
"""A web process handles each request on a thread of its own; persistent connections would pile up."""


def connection(database: SQLite | PostgreSQL, *, role: Role | None) -> dict[str, Any]:
    """Django's description of the connection for a process of this role."""
    described = _sqlite(database) if isinstance(database, SQLite) else _postgresql(database, role=role)
    if role == "worker":
        # Long-lived threads keep their connections: opening one costs more than most of what they do.
        described["CONN_MAX_AGE"] = None
    return described


def _sqlite(database: SQLite) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(database.path),
        "OPTIONS": dict(SQLITE_OPTIONS),
    }


def _postgresql(database: PostgreSQL, *, role: Role | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database.name,
        "USER": database.user,
        "PASSWORD": database.password,
        "HOST": database.host,
        "PORT": database.port,
        "OPTIONS": dict(database.options),
    }
    if role == "web":
        described["OPTIONS"]["pool"] = dict(WEB_POOL)
    if role == "worker":
        # No pool: long-lived threads never give a connection back, and workers fork.
        described["CONN_HEALTH_CHECKS"] = True
    return described
