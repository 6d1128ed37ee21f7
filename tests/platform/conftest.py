"""A cluster with a fake coordinator, in real processes."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from django_q.signing import SignedPackage

from tests.platform import journal
from tests.support.processes import Instance
from tests.support.waiting import until


@dataclass
class ClusterUnderTest:
    instance: Instance

    @property
    def journal(self) -> list[list[str]]:
        return journal.read(self.instance.directory / "journal")

    def names(self, event: str) -> list[str]:
        """The names of the tasks to which this happened, in order, repeats included."""
        return [line[1] for line in self.journal if line[0] == event]

    def start(self, *, workers: int = 2) -> None:
        before = self._started()
        self.main = self.instance.spawn("drain_worker", "--workers", str(workers))
        until(lambda: self._started() >= before + workers, within=30, what="all workers started")
        self.instance.pid("monitor")
        self.instance.pid("pusher")

    def _started(self) -> int:
        return sum(line[0] == "started" for line in self.journal)

    def enqueue(self, function: str, *names: str, arguments: tuple[object, ...] = ()) -> None:
        """Put one task per name in the queue, all in one transaction."""
        rows = [
            ("holdfast", self._payload(function, (name, *arguments)), datetime.now(UTC)) for name in names
        ]
        self._execute_many("INSERT INTO django_q_ormq (key, payload, lock) VALUES (%s, %s, %s)", rows)

    def queued(self) -> list[datetime]:
        """Until when each task in the queue is locked, oldest first."""
        rows = self._query("SELECT lock FROM django_q_ormq ORDER BY id")
        times = (datetime.fromisoformat(str(lock)) for (lock,) in rows)
        return [time if time.tzinfo else time.replace(tzinfo=UTC) for time in times]

    def wait_until_done(self, *names: str, event: str = "ran", within: float = 15) -> None:
        until(
            lambda: set(names) <= set(self.names(event)),
            within=within,
            what=f"{names} {event}\n{self.instance.output}\n{self.journal}",
        )

    def wait_for_exit(self, *, within: float = 10) -> int:
        """The exit code of the cluster; by then no process of it is left, or soon."""
        code = self.main.wait(timeout=within)
        until(lambda: not self.instance.processes(), within=10, what="no process left")
        return code

    def _payload(self, function: str, arguments: tuple[object, ...]) -> str:
        task = {
            "id": uuid4().hex,
            "name": "test",
            "func": f"tests.platform.tasks.{function}",
            "args": arguments,
            "kwargs": {},
        }
        return str(SignedPackage.dumps(task))

    def _query(self, statement: str) -> list[tuple[object, ...]]:
        url = self.instance.environ["DATABASE_URL"]
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(urlsplit(url).path[1:])) as database:
                return database.execute(statement).fetchall()
        with psycopg.connect(url) as server:
            return server.execute(statement).fetchall()

    def _execute_many(self, statement: str, rows: list[tuple[str, str, datetime]]) -> None:
        url = self.instance.environ["DATABASE_URL"]
        if url.startswith("sqlite"):
            texts = [(key, payload, lock.replace(tzinfo=None).isoformat(" ")) for key, payload, lock in rows]
            with closing(sqlite3.connect(urlsplit(url).path[1:], timeout=20)) as database, database:
                database.executemany(statement.replace("%s", "?"), texts)
        else:
            with psycopg.connect(url) as server:
                server.cursor().executemany(statement, rows)


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    directory = tmp_path_factory.mktemp("migrated")
    with Instance.prepare(directory) as instance:
        instance.manage("migrate", "-v", "0")
    return directory / "holdfast.sqlite3"


@pytest.fixture
def cluster(tmp_path: Path, migrated_sqlite: Path) -> Iterator[ClusterUnderTest]:
    """A cluster on a SQLite file of its own, not started yet."""
    shutil.copy(migrated_sqlite, tmp_path / "holdfast.sqlite3")
    with Instance.prepare(
        tmp_path, **CLUSTER_ENVIRON, HOLDFAST_TEST_JOURNAL=str(tmp_path / "journal")
    ) as instance:
        yield ClusterUnderTest(instance)


CLUSTER_ENVIRON = {
    "DJANGO_SETTINGS_MODULE": "tests.platform.cluster_settings",
    "HOLDFAST_GRACE_SECONDS": "8",
}
