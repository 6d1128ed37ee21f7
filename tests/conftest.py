"""The rules of the suite: what is skipped is told, what is required fails."""

import json
import os
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
