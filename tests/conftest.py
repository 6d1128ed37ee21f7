"""The rules of the suite: what is skipped is told, what is required fails."""

import os

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
    needs = [reason for report in terminalreporter.stats.get("skipped", []) if (reason := _need_of(report))]
    for reason in sorted(set(needs)):
        terminalreporter.write_line(
            f"skipped: {needs.count(reason)} tests, this machine lacks what they need: {reason}"
        )
    if needs:
        terminalreporter.write_line(f"skipped for what this machine lacks: {len(needs)} tests")


def _need_of(report: pytest.TestReport) -> str | None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return reason.removeprefix("Skipped: ") if reason.startswith("Skipped: needs ") else None
