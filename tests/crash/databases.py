"""A prepared database to copy: each point starts on one of its own."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from tests.crash.wrapping import PROJECT
from tests.support import servers

Database = Literal["sqlite", "postgresql"]

SECRET: Final = "a key for tests only, of no value anywhere else"


def environ(url: str, directory: Path) -> dict[str, str]:
    """What every process of a house has in common."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return inherited | {
        "DJANGO_SETTINGS_MODULE": "tests.crash.settings",
        "DATABASE_URL": url,
        "HOLDFAST_RUN_DIR": str(directory / "run"),
        "SECRET_KEY": SECRET,
        "PYTHONUNBUFFERED": "1",
    }


@dataclass(kw_only=True)
class Template:
    """A migrated database with a user, his token and the agents of the script."""

    database: Database
    directory: Path
    url: str
    token: str
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @contextmanager
    def copy(self, directory: Path) -> Iterator[str]:
        """The URL of a copy that lives as long as the block."""
        if self.database == "sqlite":
            shutil.copy(self.directory / "template.sqlite3", directory / "holdfast.sqlite3")
            yield f"sqlite:///{directory}/holdfast.sqlite3"
            return
        name = f"{urlsplit(self.url).path[1:]}_{next(self._numbers)}"
        _postgres(f'CREATE DATABASE "{name}" TEMPLATE "{urlsplit(self.url).path[1:]}"')
        try:
            yield _named(name)
        finally:
            _postgres(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def template(database: Database, directory: Path) -> Iterator[Template]:
    if database == "sqlite":
        url = f"sqlite:///{directory}/template.sqlite3"
        token = _seed(url, directory)
        yield Template(database=database, directory=directory, url=url, token=token)
        return
    name = f"holdfast_crash_{uuid4().hex[:12]}"
    _postgres(f'CREATE DATABASE "{name}"')
    try:
        url = _named(name)
        yield Template(database=database, directory=directory, url=url, token=_seed(url, directory))
    finally:
        _postgres(f'DROP DATABASE "{name}" WITH (FORCE)')


def _seed(url: str, directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.seed"],
        cwd=PROJECT, env=environ(url, directory), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the database could not be prepared\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def _named(name: str) -> str:
    return urlunsplit(urlsplit(servers.postgres_url())._replace(path=f"/{name}"))


def _postgres(statement: str) -> None:
    import psycopg

    with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
        server.execute(statement.encode())
