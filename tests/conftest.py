"""The rules of the suite: what is skipped is told, what is required fails."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.requirements import need


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("requires"):
        need(*marker.args)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A run on PostgreSQL is for the tests that promise to hold there too."""
    if os.environ.get("HOLDFAST_TEST_DATABASE") != "postgres":
        return
    chosen = [item for item in items if item.get_closest_marker("both_databases")]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.fixture(autouse=True)
def _tables_are_what_the_logs_give(request: pytest.FixtureRequest, _django_db_marker: None) -> Iterator[None]:
    """Every conversation of the suite replays from its log; ``rows_of_its_own`` where a test puts others."""
    uses_database = {"db", "transactional_db", "_django_db_helper"} & set(request.fixturenames)
    if not uses_database and request.node.get_closest_marker("django_db") is None:
        yield
        return
    request.getfixturevalue("_django_db_helper")
    yield
    if request.node.get_closest_marker("rows_of_its_own") is None and not _is_broken():
        assert _differences() == []


def _is_broken() -> bool:
    """Whether the test ended inside a transaction that the database refused, and nothing can be asked."""
    from django.db import connection

    return connection.needs_rollback


def _differences() -> list[str]:
    from sessions_app.log import replay
    from sessions_app.models import Session

    ids = list(Session.objects.order_by("pk").values_list("pk", flat=True))
    return [f"{pk}: {each}" for pk in ids for each in replay.rebuild(pk, check=True)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Leave what was skipped for lack of something where ``python -m tests`` adds it up."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [f"{report.nodeid}: {reason}" for report in skipped if (reason := _need_of(report))]
    if reasons and (path := os.environ.get("HOLDFAST_TEST_SKIPS")):
        with Path(path).open("a") as file:
            file.write(json.dumps(reasons) + "\n")


def _need_of(report: pytest.TestReport) -> str | None:
    """What the machine lacked, when that is why the test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return reason.removeprefix("Skipped: ") if reason.startswith("Skipped: needs ") else None
