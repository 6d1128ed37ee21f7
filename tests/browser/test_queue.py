"""What waits above the composer, and going on after a Stop."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.people import Person
from tests.support.requirements import requires

pytestmark = requires("chromium")

SLOWLY = "[[delay 60]] [[words 120]]"


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


def test_enter_queues_and_control_enter_steers(person: Person) -> None:
    session = person.start_chat(SLOWLY)
    person.wait_for_text(5)

    person.write("queued")
    person.composer.fill("steered")
    person.composer.press("Control+Enter")

    expect(person.tray.filter(has_text="queued")).to_contain_text("Queued")
    expect(person.tray.filter(has_text="steered")).to_contain_text("Read at the next step")
    prompts = person.api(f"/sessions/{session}/prompts")["results"]
    assert [(each["text"], each["delivery"]) for each in prompts] == [
        ("queued", "queue"),
        ("steered", "steer"),
    ]
    person.stop()


def test_of_two_that_wait_only_the_one_that_was_named_is_moved(person: Person) -> None:
    """T18: first in, first out; nothing is merged, nothing else moves."""
    session = person.start_chat(SLOWLY)
    person.wait_for_text(5)
    person.write("[[words 2]]")
    person.write("[[words 3]]")
    expect(person.tray).to_have_count(2)

    person.tray.filter(has_text="[[words 3]]").get_by_role("button", name="Steer now").click()

    expect(person.tray.filter(has_text="[[words 3]]")).to_contain_text("Read at the next step")
    expect(person.tray.filter(has_text="[[words 2]]")).to_contain_text("Queued")
    expect(person.questions).to_have_text([SLOWLY, "[[words 3]]", "[[words 2]]"], timeout=60_000)
    person.wait_for_answer(3)
    assert len(person.api(f"/sessions/{session}/messages")["results"]) == 6


def test_a_waiting_prompt_is_taken_back_into_the_composer_to_be_written_anew(person: Person) -> None:
    session = person.start_chat(SLOWLY)
    person.wait_for_text(5)
    person.write("half a thought")

    person.tray.get_by_role("button", name="Edit").click()

    expect(person.composer).to_have_value("half a thought")
    expect(person.composer).to_be_focused()
    expect(person.tray).to_have_count(0)
    prompts = person.api(f"/sessions/{session}/prompts?state=withdrawn")["results"]
    assert [each["text"] for each in prompts] == ["half a thought"]
    person.composer.fill("")
    person.stop()


def test_a_stopped_answer_is_continued(person: Person) -> None:
    person.start_chat(SLOWLY)
    person.wait_for_text(30)
    person.stop()
    expect(person.answers.last).to_contain_text("Stopped by you.")

    person.page.get_by_role("button", name="Continue").click()

    person.wait_for_answer(2)
    assert person.shown().endswith("120")


def test_an_answer_that_was_stopped_before_its_first_word_can_be_asked_for_again(person: Person) -> None:
    """T02: an empty answer has no spinner, and Regenerate works on it."""
    person.start_chat("[[delay 2500]] [[words 1]]")
    expect(person.answers.last.get_by_text("Waiting for model…")).to_be_visible()
    person.stop()
    expect(person.answers.last).to_contain_text("Stopped by you.")
    expect(person.answers.last.get_by_text("Waiting for model…")).to_be_hidden()

    person.page.get_by_role("button", name="Regenerate").click()

    person.wait_for_answer(1)
    assert person.shown() == "1"


def test_silence_of_the_model_is_said_with_its_length(person: Person) -> None:
    person.page.clock.install()
    person.start_chat("[[hang]]")
    person.wait_for_text(1)

    person.page.clock.run_for(10_000)
    expect(person.pill).to_contain_text("still waiting")
    person.page.clock.run_for(55_000)

    expect(person.pill).to_contain_text(re.compile(r"no text for 6\d s"))
    person.stop()
    person.page.clock.run_for(2_000)
    expect(person.pill).to_have_text("Stopped by you")


def test_a_reload_in_the_second_answer_leaves_the_first_as_it_was(person: Person) -> None:
    """T13: nothing of one answer is ever shown as another's."""
    person.start_chat("[[words 5]]")
    person.wait_for_answer()
    person.wait_until_idle()
    person.write("[[delay 60]] [[words 40]]")
    expect(person.answers).to_have_count(2)
    person.page.reload()

    person.wait_for_answer(2)

    expect(person.answers.first.locator("[data-kind=text] [data-slot=text]")).to_have_text("1 2 3 4 5")
    assert person.shown() == " ".join(map(str, range(1, 41)))
