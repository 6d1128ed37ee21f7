"""Whether an installation would work as it is configured: every finding is a line for the operator."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core import checks
from django.core.cache import cache
from django.db import Error, connection, transaction

from config import env
from config.checks import heartbeats_outlast_a_busy_database
from sessions_app.live import health, wakes
from sessions_app.models import Figure, Worker
from sessions_app.operations import readiness, vendors
from sessions_app.ownership.lockfile import LockFile

Grade = Literal["ok", "warn", "bad"]

_CONNECT_SECONDS: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    grade: Grade
    what: str
    told: str


def inspect() -> Iterator[Finding]:
    """Look at everything, one after the other; what is wrong with one hides nothing of the next."""
    for look in _LOOKS:
        try:
            yield from look()
        except Exception as error:  # noqa: BLE001 - a finding like others: servers and drivers fail in their own ways
            yield _bad(look.__name__.strip("_"), f"could not be looked at: {_reason(error)}")


def _ok(what: str, told: str) -> Finding:
    return Finding(grade="ok", what=what, told=told)


def _warn(what: str, told: str) -> Finding:
    return Finding(grade="warn", what=what, told=told)


def _bad(what: str, told: str) -> Finding:
    return Finding(grade="bad", what=what, told=told)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _variables() -> Iterator[Finding]:
    for variable in env.listed(os.environ, root=settings.BASE_DIR):
        told = variable.shown if variable.is_set else f"{variable.shown or 'unset'} (default)"
        yield _ok(variable.name, told)
    for name in env.unknown(os.environ, root=settings.BASE_DIR):
        yield _warn(name, "nothing reads this variable; is it misspelt?")


def _system_checks() -> Iterator[Finding]:
    """With those for deployment where people come over HTTPS."""
    is_deployed = settings.SESSION_COOKIE_SECURE
    told = checks.run_checks(include_deployment_checks=is_deployed)
    if not is_deployed:
        told += heartbeats_outlast_a_busy_database()
    found = [each for each in told if not each.is_silenced() and each.level >= checks.WARNING]
    for each in found:
        grade: Grade = "bad" if each.is_serious() else "warn"
        yield Finding(grade=grade, what=each.id or "check", told=f"{each.msg} {each.hint or ''}".strip())
    if not found:
        yield _ok("system checks", "nothing to say" + (", for deployment neither" if is_deployed else ""))


def _database() -> Iterator[Finding]:
    name = settings.DATABASES["default"]["NAME"]
    if connection.vendor == "sqlite" and not Path(name).exists():
        yield _bad("database", f"{name} is not there yet: run python manage.py migrate, or manage.py up")
        return
    try:
        missing = readiness.missing_migrations()
    except Error as error:
        yield _bad("database", f"does not answer: {_reason(error)}")
        return
    yield _ok("database", f"{connection.vendor} answers")
    if missing:
        yield _bad("migrations", f"{missing} are missing: run python manage.py migrate")
        return
    yield _ok("migrations", "all are applied")
    yield _try("writing", _write, "can be written")
    yield _try("queue", wakes.depth, "its table is there")
    yield from _hosts()
    if connection.vendor == "sqlite":
        yield _journal()


def _write() -> None:
    """What is written is taken back."""
    with transaction.atomic():
        Figure.objects.create(name="check_config")
        transaction.set_rollback(True)


def _try(what: str, act: Callable[[], object], told: str) -> Finding:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return _bad(what, _reason(error))
    return _ok(what, told)


def _journal() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        (mode,) = cursor.fetchone()
    if mode != "wal":
        return _bad("journal", f"SQLite is in mode {mode}: run python manage.py migrate, which sets WAL")
    return _ok("journal", "WAL")


def _hosts() -> Iterator[Finding]:
    living = Worker.objects.filter(kind="worker", stopped_at=None, dead_at=None)
    hosts = sorted(set(living.values_list("host", flat=True)))
    if connection.vendor == "sqlite" and len(hosts) > 1:
        yield _bad("workers", f"several hosts use one SQLite file: {', '.join(hosts)}. Use PostgreSQL")
        return
    yield _ok("workers", f"{living.count()} not known to have ended, on {', '.join(hosts) or 'no host'}")


def _channel_layer() -> Iterator[Finding]:
    layer: Mapping[str, Any] = settings.CHANNEL_LAYERS["default"]
    path = layer.get("CONFIG", {}).get("path")
    if path is not None and not _listens(path):
        yield _ok("channel layer", "embedded; no web process serves it now, so that nothing was sent")
        return
    if async_to_sync(health.layer_answers)():
        yield _ok("channel layer", "carries messages")
    else:
        yield _bad("channel layer", "carries nothing: is the server behind REDIS_URL up?")


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_CONNECT_SECONDS)
        try:
            client.connect(path)
        except OSError:
            return False
    return True


def _cache() -> Iterator[Finding]:
    def ask() -> None:
        cache.set("check_config", 1, timeout=10)
        if cache.get("check_config") != 1:
            raise LookupError("what was stored is not there")

    yield _try("cache", ask, "keeps what it is given")


def _run_directory() -> Iterator[Finding]:
    directory: Path = settings.HOLDFAST_RUN_DIR

    def lock() -> None:
        with tempfile.TemporaryDirectory(dir=directory, prefix="check-") as own:
            LockFile(Path(own) / "check.lock").close()

    yield _try("run directory", lock, f"{directory}: files can be made and locked")


def _models() -> Iterator[Finding]:
    """What an administrator says of models is in the database: without it only what is built in is told."""
    model, servers = settings.HOLDFAST_DEFAULT_MODEL, vendors.servers()
    if _is_migrated():
        yield _try("default model", lambda: vendors.require(model), f"{model} can be asked")
        servers |= vendors.named_servers()
    else:
        yield _try("default model", lambda: vendors.require_built_in(model), f"{model} has what it needs")
    for name, url in servers.items():
        yield _reach(name, url)


def _is_migrated() -> bool:
    name = settings.DATABASES["default"]["NAME"]
    if connection.vendor == "sqlite" and not Path(name).exists():
        return False
    try:
        return not readiness.missing_migrations()
    except Error:
        return False


def _reach(name: str, url: str) -> Finding:
    """A connection and nothing more. Behind a proxy for outgoing requests it tells little."""
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    try:
        socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        return _warn(name, f"{address[0]} port {address[1]} is out of reach: {_reason(error)}")
    return _ok(name, f"{address[0]} port {address[1]} takes connections")


def _tool_servers() -> Iterator[Finding]:
    commands: Mapping[str, tuple[str, ...]] = settings.HOLDFAST_MCP_COMMANDS
    for name, words in commands.items():
        if shutil.which(words[0]) is None:
            yield _bad(f"MCP command {name}", f"{words[0]} is not a program on PATH")
        else:
            yield _ok(f"MCP command {name}", words[0])


_LOOKS: Final[tuple[Callable[[], Iterator[Any]], ...]] = (
    _variables,
    _system_checks,
    _database,
    _channel_layer,
    _cache,
    _run_directory,
    _models,
    _tool_servers,
)
