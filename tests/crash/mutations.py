"""``python -m tests.crash.mutations``: the matrix reports a violation for each fault, and none without it.

The fence check, the guards of the claim, the write-ahead of tools, the owed run of a promotion and the asking of a
provider are taken away one after the other. Ends with 1 if one of them goes unseen, or if the same points break a promise
without it.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.crash import databases, matrix, mutants
from tests.crash.chapters import Chapter, named
from tests.crash.databases import Template
from tests.crash.driver import Driver, Json
from tests.crash.house import House
from tests.crash.matrix import Outcome, Point
from tests.support import servers
from tests.support.nursery import Nursery

_SHORT_LEASE: Final = {"HOLDFAST_HEARTBEAT_SECONDS": "0.4", "HOLDFAST_LEASE_SECONDS": "2"}


def _stale(d: Driver) -> None:
    """The owner stops for longer than its lease, others take over and answer, then it goes on."""
    s = d.session()
    d.call(s, "#call-a", ("charge", {"amount": 6}))
    d.until((d.house.directory / "frozen").exists, "a frozen worker")
    d.finish(s)
    asked, events, told = len(d.provider.journal), len(d.events(s)), d.house.output.count("drain.")
    os.kill(int((d.house.directory / "frozen").read_text()), signal.SIGCONT)
    d.until(
        lambda: (
            len(d.provider.journal) > asked
            or len(d.events(s)) > events
            or d.house.output.count("drain.") > told
        ),
        "a sign of the worker that goes on",
    )
    d.until(lambda: all(asked.is_over for asked in d.provider.journal), "the end of every request")
    d.until(lambda: not _open_steps(d.events(s)), "the end of every step")
    d.finish(s)


def _open_steps(events: list[Json]) -> set[str]:
    started = {event["data"]["message"] for event in events if event["type"] == "step.started"}
    return started - {
        event["data"]["message"] for event in events if event["type"] in ("step.ended", "step.failed")
    }


def _race(d: Driver) -> None:
    """Everybody recovers at once what was lost in a stream."""
    s = d.session()
    d.prompt(s, "Tell me #slow-a")
    d.until_streaming(s, "#slow-a")
    d.house.kill_workers()
    with ThreadPoolExecutor(3) as commands:
        for _ in range(3):
            commands.submit(d.house.run, "manage.py", "recover_sessions", "--no-wait")
    d.provider.open("#slow-a")
    d.house.start_workers()
    d.finish(s)


STALE: Final = Chapter(name="stale", script=_stale, environ=_SHORT_LEASE, workers=2)
RACE: Final = Chapter(name="race", script=_race)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A fault, and the chapter with the verb at which it can be seen."""

    fault: str
    chapter: Chapter
    verb: str = ""
    """The point lies after the first commit of this verb; empty: nothing is killed."""
    how: str = "after"
    control: str = ""
    """What stays of the mutation when its fault is taken out."""
    prepare: Callable[[House], object] | None = None


MUTATIONS: Final = (
    Mutation(fault="fence", chapter=STALE, verb="stages.begin", how="frozen"),
    Mutation(fault="fence", chapter=STALE, verb="recorder._complete", how="frozen"),
    Mutation(
        fault="claim",
        chapter=RACE,
        control=mutants.SLOW_DISCOVERY,
        prepare=lambda house: house.run("-m", "tests.crash.loosen"),
    ),
    Mutation(fault="write-ahead", chapter=named("tools")),
    Mutation(fault="owed-run", chapter=named("refusals"), verb="stages.begin"),
    Mutation(fault="inquiry", chapter=named("kept")),
)


def _point(mutation: Mutation) -> Point:
    if not mutation.verb:
        return Point(chapter=mutation.chapter)
    return Point(chapter=mutation.chapter, verb=mutation.verb, how=mutation.how)


def _play(mutation: Mutation, template: Template, nursery: Nursery, fault: str) -> Outcome:
    prepare = mutation.prepare if fault == mutation.fault else None
    return matrix.run(_point(mutation), template, nursery, mutation=fault, prepare=prepare)


def check(mutation: Mutation, template: Template, nursery: Nursery) -> bool:
    """Whether the matrix sees the fault, and nothing where it is not."""
    point = f"{mutation.fault} at {_point(mutation)}"
    without = _play(mutation, template, nursery, mutation.control)
    if without.violations:
        print(f"{point}: violations without the fault", *without.violations, without.output, sep="\n    ")
        return False
    with_it = _play(mutation, template, nursery, mutation.fault)
    seen = [violation for violation in with_it.violations if not violation.startswith("stuck")]
    print(f"{point}: {'seen' if seen else 'NOT SEEN'}", *seen[:4], sep="\n    ", flush=True)
    return bool(seen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--fault", action="append", help="only this one")
    options = parser.parse_args()
    if options.database == "postgresql" and not servers.is_there("postgresql"):
        parser.error("no PostgreSQL answers")
    chosen = [each for each in MUTATIONS if not options.fault or each.fault in options.fault]
    with ExitStack() as held:
        directory = held.enter_context(tempfile.TemporaryDirectory())
        template = held.enter_context(databases.template(options.database, Path(directory)))
        nursery = held.enter_context(Nursery.running())
        results = [check(mutation, template, nursery) for mutation in chosen]
    unseen = results.count(False)
    print(f"{options.database} mutations: {len(results)}, unseen: {unseen}")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main())
