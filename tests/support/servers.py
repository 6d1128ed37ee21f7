"""Where the servers are that some tests need, and whether they answer."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from sessions_app import local_model

Requirement = Literal["postgresql", "redis", "chromium", "npm", "local model"]

OLDEST_NODE: Final = 20

_CHROMIUM_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def postgres_url() -> str:
    """The server that tests may create databases on; its path names a database to connect to first."""
    return os.environ.get("HOLDFAST_TEST_POSTGRES_URL", "postgres://127.0.0.1:5432/postgres")


def redis_url() -> str:
    return os.environ.get("HOLDFAST_TEST_REDIS_URL", "redis://127.0.0.1:6379/0")


def chromium_path() -> str | None:
    found = (shutil.which(name) for name in _CHROMIUM_NAMES)
    return os.environ.get("HOLDFAST_TEST_CHROMIUM") or next(filter(None, found), None)


@functools.cache
def is_there(requirement: Requirement) -> bool:
    """Whether the server answers or the program is installed; asked once in a run."""
    match requirement:
        case "postgresql":
            return _postgres_answers()
        case "redis":
            return _redis_answers()
        case "chromium":
            return chromium_path() is not None
        case "local model":
            return local_model.is_installed()
        case "npm":
            return shutil.which("npm") is not None and _node_is_recent()


def _node_is_recent() -> bool:
    """What tests install from npm runs on Node.js 20 or newer; distributions still ship 18."""
    try:
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return int(told.lstrip("v").split(".")[0]) >= OLDEST_NODE


def _postgres_answers() -> bool:
    import psycopg

    try:
        psycopg.connect(postgres_url(), connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def _redis_answers() -> bool:
    import redis

    client = redis.Redis.from_url(redis_url(), socket_connect_timeout=3)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


@contextmanager
def temporary_postgres_database() -> Iterator[str]:
    """The URL of a new empty database, dropped with all its connections in the end."""
    import psycopg
    from psycopg import sql

    name = f"holdfast_{uuid4().hex[:16]}"
    with psycopg.connect(postgres_url(), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlunsplit(urlsplit(postgres_url())._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(postgres_url(), autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
