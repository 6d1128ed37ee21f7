"""``python -m tests.crash``: kill at every durable commit of the conversation, and check what is left.

The last line per database is ``DATABASE crash points: N, violations: 0``. Ends with 1 on a violation, or when
a whole run tried fewer points than an undisturbed one makes commits.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from schema.events import MANIFEST
from tests.crash import databases, matrix
from tests.crash.chapters import CHAPTERS, Chapter
from tests.crash.databases import Database, Template
from tests.crash.matrix import Outcome, Point
from tests.support import servers
from tests.support.nursery import Nursery

TRIES = 3
"""Runs differ a little: a point at the end of a chapter that one run did not reach is tried again."""

Counts = dict[str, int]


def main() -> int:
    options = _options()
    chosen: list[Database] = options.database or ["sqlite", "postgresql"]
    with Nursery.running() as nursery:
        return max(_run_on(database, nursery, options) for database in chosen)


def _run_on(database: Database, nursery: Nursery, options: argparse.Namespace) -> int:
    if database == "postgresql" and not servers.is_there("postgresql"):
        print("postgresql is skipped: no server answers")
        return int(os.environ.get("HOLDFAST_TEST_REQUIRE") == "all" or bool(options.database))
    with ExitStack() as held:
        directory = held.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-crash-"))
        template = held.enter_context(databases.template(database, Path(directory)))
        return _Run(template, nursery, options).play()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--database", action="append", choices=("sqlite", "postgresql"), help="default: both")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="only N points, each in another chapter"
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="which ones; printed, so that a run can be repeated"
    )
    parser.add_argument(
        "--point",
        default="",
        metavar="K:before|after",
        help="one point; K counts through all chapters, or CHAPTER:K",
    )
    parser.add_argument("--chapter", action="append", default=[], help="only this chapter")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 2,
        metavar="N",
        help="points that are played at the same time; default: one per processor (%(default)s)",
    )
    return parser.parse_args()


@dataclass
class _Run:
    """The matrix on one database."""

    template: Template
    nursery: Nursery
    options: argparse.Namespace

    def play(self) -> int:
        began = time.monotonic()
        options, database = self.options, self.template.database
        chapters = [each for each in CHAPTERS if not options.chapter or each.name in options.chapter]
        chooser = random.Random(_seed(options))
        if options.sample:
            chapters = chooser.sample(chapters, min(options.sample, len(chapters)))
        undisturbed = self._play([Point(chapter=chapter) for chapter in chapters])
        counts = {outcome.point.chapter.name: len(outcome.commits) for outcome in undisturbed}
        commits = sum(counts.values())
        print(
            f"{database}: an undisturbed run makes {commits} commits in {len(chapters)} chapters", flush=True
        )
        points = _points(chapters, counts)
        if options.sample:
            points = _spread(points, chapters, options.sample, chooser)
        elif options.point:
            points = [_named(options.point, points)]
        else:
            _tell_unmade(undisturbed)
        outcomes = self._play(points)
        tried = sum(outcome.was_reached for outcome in outcomes)
        violated = [each for each in (*undisturbed, *outcomes) if each.violations]
        is_whole = not (options.sample or options.point or options.chapter)
        if is_whole and tried < commits:
            print(f"{database}: only {tried} points were reached, of at least {commits}")
        violations = sum(len(each.violations) for each in violated)
        print(
            f"{database}: {len(points)} points in {time.monotonic() - began:.0f} s, {options.jobs} at a time"
        )
        print(f"{database} crash points: {tried}, violations: {violations}", flush=True)
        return int(bool(violated) or (is_whole and tried < commits) or tried == 0)

    def _play(self, points: Sequence[Point]) -> list[Outcome]:
        outcomes = []
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for number, outcome in enumerate(pool.map(self._until_reached, points), 1):
                outcomes.append(outcome)
                _tell(outcome)
                if number % 20 == 0:
                    print(f"{self.template.database}: {number} of {len(points)}", flush=True)
        return outcomes

    def _until_reached(self, point: Point) -> Outcome:
        for _ in range(TRIES):
            outcome = matrix.run(point, self.template, self.nursery)
            if outcome.was_reached or not point.how or outcome.violations:
                break
        return outcome


def _seed(options: argparse.Namespace) -> int:
    seed: int = random.randrange(10**6) if options.seed is None else options.seed
    if options.sample:
        print(f"--sample {options.sample} --seed {seed}", flush=True)
    return seed


def _points(chapters: Sequence[Chapter], counts: Counts) -> list[Point]:
    return [
        Point(chapter=chapter, number=number, how=how)
        for chapter in chapters
        for number in range(1, counts[chapter.name] + 1)
        for how in ("before", "after")
    ]


def _spread(
    points: list[Point], chapters: Sequence[Chapter], size: int, chooser: random.Random
) -> list[Point]:
    chosen = [chooser.choice([each for each in points if each.chapter is chapter]) for chapter in chapters]
    rest = [each for each in points if each not in chosen]
    return chosen + chooser.sample(rest, max(0, min(size - len(chosen), len(rest))))


def _named(text: str, points: list[Point]) -> Point:
    where, _, how = text.rpartition(":")
    name, _, number = where.rpartition(":")
    if not name:
        return points[2 * (int(number) - 1) + (how == "after")]
    return next(
        each for each in points if (each.chapter.name, each.number, each.how) == (name, int(number), how)
    )


def _tell(outcome: Outcome) -> None:
    if outcome.violations:
        print(f"VIOLATION at {outcome.point} ({outcome.hit})", *outcome.violations, sep="\n    ")
        print(outcome.output[-4000:], flush=True)
    elif outcome.point.how and not outcome.was_reached:
        print(f"not reached: {outcome.point}", flush=True)


def _tell_unmade(undisturbed: Sequence[Outcome]) -> None:
    """Name the events that no chapter makes, so that new ones are not forgotten here."""
    made = {event for outcome in undisturbed for commit in outcome.commits for event in commit["events"]}
    unmade = sorted({kind.type for kind in MANIFEST} - made)
    if unmade:
        print(f"events that the script does not make: {', '.join(unmade)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
