"""The matrix itself is kept alive: a few of its points, and its eyes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import databases, matrix
from tests.crash.chapters import named
from tests.crash.databases import Template
from tests.crash.matrix import Point


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    with tempfile.TemporaryDirectory() as directory, databases.template("sqlite", Path(directory)) as made:
        yield made


@pytest.mark.parametrize(
    ("number", "how", "verb"),
    [(2, "after", "inbox.admit.admit"), (3, "after", "stages.begin"), (5, "before", "recorder.dispatch")],
)
def test_a_process_that_dies_at_a_commit_breaks_no_promise(template, number, how, verb) -> None:
    outcome = matrix.run(Point(chapter=named("deletions"), number=number, how=how), template)

    assert outcome.was_reached
    assert not outcome.violations, outcome.output


def test_without_the_owed_run_of_a_promotion_a_crash_after_it_breaks_a_promise(template) -> None:
    point = Point(chapter=named("refusals"), number=3, how="after")

    outcome = matrix.run(point, template, mutation="owed-run")

    assert any(violation.startswith("P1") for violation in outcome.violations), outcome.violations
