"""One point of the matrix: a chapter on a fresh house in which a process dies, and what is left of it."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash import promises
from tests.crash.chapters import Chapter
from tests.crash.databases import Template
from tests.crash.driver import Driver
from tests.crash.house import House
from tests.crash.promises import Evidence, Seen
from tests.crash.provider import Provider
from tests.support.nursery import Nursery


@dataclass(frozen=True, kw_only=True)
class Point:
    """Before or after the number-th commit of a chapter, or the first of a verb; without: nothing is disturbed."""

    chapter: Chapter
    number: int = 0
    verb: str = ""
    how: str = ""

    @property
    def where(self) -> str:
        return f"{self.verb or self.number}:{self.how}" if self.how else ""

    def __str__(self) -> str:
        return f"{self.chapter.name}:{self.where}" if self.how else f"{self.chapter.name}, undisturbed"


@dataclass(kw_only=True)
class Outcome:
    point: Point
    violations: list[str] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    was_reached: bool = False
    seconds: float = 0.0
    output: str = ""

    @property
    def hit(self) -> str:
        """The commit at which the process died, in words."""
        for commit in self.commits:
            if commit["n"] == self.point.number:
                return f"{commit['role']} {commit['verb']} {','.join(commit['events'])}"
        return ""


def run(
    point: Point,
    template: Template,
    nursery: Nursery,
    *,
    mutation: str = "",
    prepare: Callable[[House], object] | None = None,
) -> Outcome:
    """Play the chapter to its end and check every promise. ``prepare`` is done before anything starts."""
    began = time.monotonic()
    outcome = Outcome(point=point)
    with ExitStack() as held:
        directory = Path(tempfile.mkdtemp(prefix="holdfast-crash-"))
        held.callback(shutil.rmtree, directory, ignore_errors=True)
        url = held.enter_context(template.copy(directory))
        provider = held.enter_context(Provider())
        house = House(
            directory=directory, nursery=nursery, url=url, token=template.token, provider_url=provider.base_url,
            point=point.where, mutation=mutation, more=point.chapter.environ,
        )  # fmt: skip
        held.callback(house.kill)
        if prepare is not None:
            prepare(house)
        driver = Driver(house=house, provider=provider)
        _play(point.chapter, driver, outcome)
        outcome.commits = house.lines("commits")
        outcome.was_reached = house.was_killed()
        outcome.output = house.output[-20000:]
    outcome.seconds = time.monotonic() - began
    return outcome


def _play(chapter: Chapter, driver: Driver, outcome: Outcome) -> None:
    """A script that cannot go on is a violation, and what is left then is checked all the same."""
    driver.house.start(workers=chapter.workers)
    for act in (
        lambda: chapter.script(driver),
        lambda: driver.faults.extend(promises.broken(_gather(driver))),
    ):
        try:
            act()
        except AssertionError as stuck:
            driver.faults.append(f"stuck: {stuck}")
    outcome.violations = driver.faults


def _gather(driver: Driver) -> Evidence:
    """What is left, when everything is at rest."""
    kept = [session for session in driver.sessions if session not in driver.deleted]
    return Evidence(
        sessions=[_see(driver, session) for session in kept],
        acknowledged=driver.acknowledged,
        withdrawn=driver.withdrawn,
        reverted=driver.reverted,
        deleted=driver.deleted,
        journal=driver.provider.journal,
        ledger=driver.house.lines("ledger"),
        looked=driver.look(),
        budget=int(driver.house.more.get("HOLDFAST_RECOVERY_BUDGET", promises.BUDGET)),
    )


def _see(driver: Driver, session: str) -> Seen:
    return Seen(
        id=session,
        status=driver.status(session),
        events=driver.events(session),
        messages=driver.messages(session),
        prompts=driver.all(f"/sessions/{session}/prompts?state=all&limit=200"),
        attempts=driver.all(f"/attempts?session={session}&limit=200"),
    )
