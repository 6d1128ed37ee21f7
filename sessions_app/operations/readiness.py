"""Whether this process can serve: database, queue, channel layer, migrations.

Anybody may ask, so that the answer costs little however often they do: it is a second old at most, and those who ask
meanwhile wait for the same one.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakKeyDictionary

from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor

from sessions_app.live import health, wakes

logger = logging.getLogger(__name__)

Part = Literal["ok", "failed", "missing", "not checked"]

LASTS_SECONDS: Final = 1.0
WITHIN_SECONDS: Final = 5.0
"""A database that does not answer by then counts as failed; the thread that waits for it is not repeated."""


@dataclass(frozen=True, kw_only=True)
class Readiness:
    parts: dict[str, Part]

    @property
    def is_ready(self) -> bool:
        return all(part == "ok" for part in self.parts.values())


@dataclass(eq=False)
class _Looking:
    task: "asyncio.Task[Readiness]"
    until: float


async def find() -> Readiness:
    loop = asyncio.get_running_loop()
    looking = _looking.get(loop)
    if looking is None or (looking.task.done() and loop.time() > looking.until):
        looking = _looking[loop] = _Looking(loop.create_task(_look()), loop.time() + LASTS_SECONDS)
    try:
        async with asyncio.timeout(WITHIN_SECONDS):
            return await asyncio.shield(looking.task)
    except TimeoutError:
        return Readiness(parts={**_UNREACHABLE, "channel_layer": "not checked"})


_looking: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Looking]] = WeakKeyDictionary()


async def _look() -> Readiness:
    parts, answers = await asyncio.gather(asyncio.to_thread(look_at_database), health.layer_answers())
    return Readiness(parts={**parts, "channel_layer": "ok" if answers else "failed"})


_UNREACHABLE: Final[dict[str, Part]] = {
    "database": "failed",
    "queue": "not checked",
    "migrations": "not checked",
}


def look_at_database() -> dict[str, Part]:
    """On a thread of its own, whose connection ends with the look."""
    try:
        if _try(_ask) != "ok":
            return dict(_UNREACHABLE)
        return {"database": "ok", "queue": _try(wakes.depth), "migrations": _try_migrations()}
    finally:
        close_old_connections()
        connection.close()


def _ask() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _try(act: Callable[[], object]) -> Part:
    try:
        act()
    except (DatabaseError, InterfaceError, OSError) as error:
        logger.warning("readiness.failed", extra={"error": type(error).__name__, "part": act.__name__})
        return "failed"
    return "ok"


def _try_migrations() -> Part:
    try:
        return "missing" if missing_migrations() else "ok"
    except (DatabaseError, InterfaceError):
        return "failed"


def missing_migrations() -> int:
    """How many migrations the code knows and the database does not."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
