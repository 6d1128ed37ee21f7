"""The tests that docs/interface.md names exist."""

import ast
import re
from typing import Final

from tests.support.processes import PROJECT

_NAMED: Final = re.compile(r"`(\w+/test_\w+\.py)::(\w+)`")


def test_every_test_that_the_table_names_exists() -> None:
    named = _NAMED.findall((PROJECT / "docs" / "interface.md").read_text())

    missing = [f"{path}::{name}" for path, name in named if name not in _tests_in(path)]

    assert len(named) > 80
    assert missing == []


def test_every_item_and_every_fault_has_a_row() -> None:
    table = (PROJECT / "docs" / "interface.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("| ")]

    named = set(re.findall(r"\b[UT]\d+\b", " ".join(rows)))

    assert {f"U{number}" for number in range(1, 14)} <= named
    assert len([name for name in named if name.startswith("T")]) == 32


def _tests_in(path: str) -> set[str]:
    source = PROJECT / "tests" / path
    if not source.exists():
        return set()
    return {
        node.name for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.FunctionDef)
    } | {
        node.name
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.AsyncFunctionDef)
    }
