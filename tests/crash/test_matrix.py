"""The matrix itself is kept alive: a few of its points, and its eyes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import databases, matrix
from tests.crash.chapters import named
from tests.crash.databases import Template
from tests.crash.matrix import Point
from tests.support.nursery import Nursery


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    with tempfile.TemporaryDirectory() as directory, databases.template("sqlite", Path(directory)) as made:
        yield made


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery.running() as nursery:
        yield nursery


@pytest.mark.parametrize(("verb", "how"), [("admit.admit", "after"), ("recorder.dispatch", "before")])
def test_a_process_that_dies_at_a_commit_breaks_no_promise(template, nursery, verb, how) -> None:
    outcome = matrix.run(Point(chapter=named("deletions"), verb=verb, how=how), template, nursery)

    assert outcome.was_reached
    assert not outcome.violations, outcome.output


def test_without_the_owed_run_of_a_promotion_a_crash_after_it_breaks_a_promise(template, nursery) -> None:
    point = Point(chapter=named("refusals"), verb="stages.begin", how="after")

    outcome = matrix.run(point, template, nursery, mutation="owed-run")

    assert any(violation.startswith("P1") for violation in outcome.violations), outcome.violations
