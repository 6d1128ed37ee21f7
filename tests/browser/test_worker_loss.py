"""A worker that is killed while the page stays open."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import people
from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Instance]:
    """An installation that finds deaths fast and goes on by itself."""
    with people.installation(tmp_path, HOLDFAST_RECOVERY_POLICY="continue", **people.SOON) as instance:
        yield instance


def test_the_page_tells_the_loss_and_shows_the_continuation_without_a_reload(
    hasty: Instance, chromium: Browser
) -> None:
    person = people.arrive(hasty, chromium)
    person.start_chat("[[delay 40]] [[words 120]]")
    person.wait_for_text(60)

    hasty.kill("worker")

    expect(person.answers).to_have_count(2, timeout=60_000)
    person.wait_for_answer(2)
    first, second = _texts(person)
    # Before its first checkpoint nothing of the text is kept.
    assert f"{first} {second}".strip() == " ".join(map(str, range(1, 121)))
    said = person.answers.first.locator("[data-slot=card-title]")
    expect(said).to_have_text("Left unknown, and the answer went on")
    expect(person.page.get_by_text("The answer was interrupted and goes on here")).to_be_visible()
    transcript = person.page.locator("[data-slot=transcript]")
    before = transcript.inner_text()

    person.page.reload()

    expect(person.answers).to_have_count(2)
    assert transcript.inner_text() == before
    person.page.context.close()


_PARK = "from sessions_app.models import Session; Session.objects.update(parked=True, recovery_count=4)"


def test_a_chat_that_nobody_recovers_any_more_says_so_and_a_message_starts_it_again(
    hasty: Instance, chromium: Browser
) -> None:
    """Whoever recovered it was killed too, after it had parked it and before it had settled anything."""
    person = people.arrive(hasty, chromium)
    session = person.start_chat("[[delay 50]] [[words 200]]")
    person.wait_for_text(60)
    hasty.kill_everything()
    hasty.manage("shell", "-v", "0", "-c", _PARK)

    hasty.start()

    expect(person.page.get_by_text("is not continued by itself")).to_be_visible(timeout=60_000)
    expect(person.pill).to_have_attribute("data-pill", "undecided")
    assert person.api(f"/sessions/{session}")["status"]["state"] == "needs_decision"

    person.write("[[words 3]]")

    expect(person.answers.last).to_contain_text("1 2 3", timeout=60_000)
    person.wait_for_answer(2)
    expect(person.answers.first).to_have_attribute("data-state", "unknown")
    person.page.context.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Instance]:
    """An installation whose workers are heard of often and given up late."""
    given = {"HOLDFAST_HEARTBEAT_SECONDS": "0.5", "HOLDFAST_LEASE_SECONDS": "120"}
    with people.installation(tmp_path, **given) as instance:
        yield instance


def test_a_worker_that_is_not_heard_of_is_said_and_no_spinner_stands_for_it(
    patient: Instance, chromium: Browser
) -> None:
    person = people.arrive(patient, chromium)
    person.start_chat("[[delay 100]] [[words 60]]")
    person.wait_for_text(3)
    worker = patient.pid("worker")

    os.kill(worker, signal.SIGSTOP)
    try:
        expect(person.pill).to_contain_text("no sign of life for", timeout=60_000)
    finally:
        os.kill(worker, signal.SIGCONT)

    expect(person.pill).not_to_contain_text("no sign of life", timeout=60_000)
    person.wait_for_answer()
    assert person.shown() == " ".join(map(str, range(1, 61)))
    person.page.context.close()


def _texts(person: Person) -> list[str]:
    return person.page.locator("[data-slot=transcript] [data-kind=text] [data-slot=text]").all_text_contents()
