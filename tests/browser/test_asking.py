"""Asking what became of something, and what a Stop leaves behind of a tool."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import people
from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires
from tests.support.waiting import until

pytestmark = requires("chromium")


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    directory = tmp_path_factory.mktemp("installation")
    with people.installation(
        directory, HOLDFAST_RECOVERY_POLICY="ask", HOLDFAST_TOOLS="tests.browser.ledger"
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


def card(person: Person) -> Locator:
    return person.page.locator("[data-slot=transcript] [data-slot=card]")


def test_a_tool_that_knows_settles_what_was_unknown(person: Person) -> None:
    session = person.start_chat('[[tool ledger {"entry": "known"}]]')
    ask = card(person).get_by_role("button", name="Check with the tool")
    expect(ask).to_be_visible()

    ask.click()

    expect(card(person).locator("summary")).to_contain_text("Marked as done by the tool ledger")
    expect(card(person)).to_have_attribute("data-decided", "true")
    (call,) = person.api(f"/tool-calls?session={session}")["results"]
    assert (call["decision"]["action"], call["can_be_asked"]) == ("mark_done", False)


def test_a_tool_that_cannot_tell_leaves_the_decision_and_can_be_asked_again(person: Person) -> None:
    person.start_chat('[[tool ledger {"entry": "other"}]]')
    expect(card(person)).to_be_visible()
    person.page.reload()
    ask = card(person).get_by_role("button", name="Check with the tool")

    ask.click()

    expect(card(person)).to_contain_text("It was asked, and does not tell so far.")
    expect(card(person)).to_have_attribute("data-decided", "false")
    expect(ask).to_be_enabled()
    expect(card(person).get_by_role("button")).to_have_text(
        ["Check with the tool", "Mark as done…", "Mark as not done"]
    )


def test_a_stop_during_a_tool_leaves_its_outcome_unknown_and_says_so(person: Person) -> None:
    """T26: what a tool still does after a Stop is not known, so that nobody claims it was stopped."""
    person.start_chat('[[tool wait_for_ever {"entry": "x"}]]')
    expect(person.page.get_by_text("Running wait_for_ever…")).to_be_visible()

    person.stop()

    expect(person.page.get_by_text("wait_for_ever: outcome unknown")).to_be_visible()
    expect(card(person)).to_contain_text("This tool may already have changed something")
    expect(person.page.get_by_role("button", name="Stopping…")).to_be_hidden()
    person.write("[[words 3]]")
    expect(person.answers.last).to_contain_text("1 2 3")


def test_a_result_that_came_while_the_network_was_away_is_there_without_a_reload(person: Person) -> None:
    """T09: whoever joins later gets it from the log."""
    session = person.start_chat('[[delay 30]] [[words 40]] [[tool echo {"text": "ten boxes"}]]')
    person.wait_for_text(5)

    person.page.context.set_offline(True)
    until(
        lambda: person.api(f"/sessions/{session}/status")["state"] == "idle",
        within=60,
        what="the end of the answer",
    )
    expect(person.answers).to_have_count(1)
    person.page.context.set_offline(False)

    person.wait_for_answer(2)
    expect(person.answers.last).to_contain_text("ten boxes")
    assert person.shown() == person.stored_answer(session)


def test_a_limit_after_a_tool_keeps_its_result_and_asks_the_model_only(person: Person) -> None:
    """T35."""
    session = person.start_chat(
        '[[tool echo {"text": "42 apples"}]] [[then [[error rate_limit 1]] [[words 4]]]]'
    )
    expect(person.answers.last.locator("[data-slot=retry]")).to_contain_text("Attempt 2")
    expect(person.page.get_by_text("Used echo")).to_be_visible()

    person.wait_for_answer(2)

    assert person.shown().endswith("1 2 3 4")
    calls = person.api(f"/tool-calls?session={session}")["results"]
    assert [(call["name"], call["state"]) for call in calls] == [("echo", "completed")]


def test_reasoning_is_open_while_it_is_written_for_those_who_want_it(person: Person) -> None:
    person.page.goto(f"{person.base_url}/settings")
    person.page.get_by_label("Reasoning of the model").select_option("open")
    person.page.get_by_role("button", name="Save").click()
    expect(person.page.get_by_role("status")).to_have_text("Saved for this browser.")

    person.start_chat("[[delay 60]] [[reason one two three four five six seven eight]] [[words 30]]")

    thoughts = person.page.locator("details.reasoning")
    expect(thoughts).to_have_attribute("open", "")
    expect(thoughts.locator("summary")).to_have_text("Thinking…")
    person.wait_for_answer()
    expect(thoughts).not_to_have_attribute("open", "")
    expect(thoughts.locator("summary")).to_contain_text("Thought for")
    said = thoughts.locator("summary").inner_text()
    person.page.reload()
    expect(thoughts.locator("summary")).to_have_text(said)
