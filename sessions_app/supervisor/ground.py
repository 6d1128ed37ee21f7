"""What must hold before anything starts: the installation is ours alone, migrated, and its port is free."""

import errno
import fcntl
import ipaddress
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management import call_command
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

_BACKLOG: Final = 1024


class StartRefused(Exception):
    """Nothing was started. The text is one line that says why and what to do."""


def require_secret(*, host: str, environ: Mapping[str, str]) -> None:
    """A key that was made on this machine is good for this machine."""
    if not is_loopback(host) and not environ.get("SECRET_KEY"):
        raise StartRefused(
            f"SECRET_KEY is required when listening on {host}, which others can reach: "
            "set it to at least 32 random characters, the same on every host."
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def sole_use(*parts: str) -> Iterator[None]:
    """Keep other instances away from our SQLite file, for each part (web, workers) that we run.

    The locks end with this process, however it ends. Other databases are made to be shared.
    """
    with ExitStack() as held:
        if connection.vendor == "sqlite":
            for part in parts:
                held.enter_context(_locked(Path(settings.DATABASES["default"]["NAME"]).resolve(), part))
        yield


@contextmanager
def _locked(database: Path, part: str) -> Iterator[None]:
    # Not the database file itself: closing any descriptor of it would drop SQLite's own locks.
    path = database.with_name(f"{database.name}.{part}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(
                f"Another instance runs {part} on {database} already. Stop it first, "
                "or set DATABASE_URL to another file, or to PostgreSQL, which many instances may share."
            ) from None
        yield
    finally:
        os.close(descriptor)


def migrate_or_refuse() -> None:
    """Bring a SQLite file up to date; refuse a shared database that is not, because others may use it."""
    try:
        if connection.vendor == "sqlite":
            call_command("migrate", interactive=False, verbosity=0)
        else:
            _require_migrations()
    except Error as error:
        raise StartRefused(f"The database cannot be used: {_one_line(error)}") from error
    finally:
        connection.close()


def _require_migrations() -> None:
    executor = MigrationExecutor(connection)
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if missing:
        raise StartRefused(
            f"The database lacks {missing} migrations. Apply them with: python manage.py migrate"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def listen(*, host: str, port: int) -> socket.socket:
    """A listening socket. It stays open while the web server behind it is started again, so that a restart
    is a short wait for those who connect meanwhile, and nobody else can take the port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StartRefused(f"Cannot listen on {host}: {error.strerror}.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StartRefused(_why_not(error, host=host, port=port)) from error
    return listener


def _why_not(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is already in use. Stop what uses it, or choose another with --port."
    return f"Cannot listen on {host} port {port}: {error.strerror}."


def free_port(host: str) -> int:
    """A port that nobody listened on just now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
