"""The list of chats and the header: found, renamed, pinned, archived, deleted; agent, model and policy chosen."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")

_AGENT = "from sessions_app.models import Agent; Agent.objects.get_or_create(name='cook', defaults={'recovery_policy': 'off'})"


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


@pytest.fixture(scope="module")
def cook(instance: Instance) -> None:
    instance.manage("shell", "-c", _AGENT)


def row(person: Person, title: str) -> Locator:
    return person.page.locator(".chat-line").filter(has_text=title)


def act(person: Person, title: str, name: str) -> None:
    person.page.get_by_role("button", name=f"More for {title}").focus()
    person.page.keyboard.press("Enter")
    person.page.locator(".row-popup").get_by_text(name, exact=True).click()


def choose(page: Page, picker: str, name: str) -> None:
    page.locator(f"[data-picker={picker}] summary").click()
    page.locator(f"[data-picker={picker}]").get_by_role("button").filter(has_text=name).first.click()


def test_a_chat_is_renamed_pinned_and_archived_from_its_row(person: Person) -> None:
    session = person.start_chat("Plan of the month")
    person.wait_for_answer()
    person.start_chat("Something newer")
    person.wait_for_answer()

    act(person, "Plan of the month", "Rename")
    field = person.page.get_by_label("New title")
    expect(field).to_be_focused()
    field.fill("Plan of the year")
    field.press("Enter")
    expect(row(person, "Plan of the year")).to_be_visible()

    act(person, "Plan of the year", "Pin to the top")
    expect(person.page.locator("[data-slot=chat-list] section").first).to_contain_text(
        re.compile(r"Pinned\s+Plan of the year")
    )

    act(person, "Plan of the year", "Archive")
    expect(row(person, "Plan of the year")).to_have_count(0)
    stored = person.api(f"/sessions/{session}")
    assert (stored["title"], stored["pinned"], stored["archived"]) == ("Plan of the year", True, True)


def test_escape_keeps_the_old_title_and_does_not_stop_an_answer(person: Person) -> None:
    person.start_chat("Old title\n[[delay 60]] [[words 60]]")
    person.wait_for_text(5)

    act(person, "Old title", "Rename")
    person.page.get_by_label("New title").fill("never mind")
    person.page.get_by_label("New title").press("Escape")

    expect(row(person, "Old title")).to_be_visible()
    person.wait_for_answer()


def test_a_chat_is_deleted_from_its_row_unless_it_is_undone(person: Person) -> None:
    session = person.start_chat("Not for long")
    person.wait_for_answer()
    person.page.goto(person.base_url)
    person.page.clock.install()

    act(person, "Not for long", "Delete…")
    person.page.get_by_role("button", name="Undo").click()
    person.page.clock.run_for(11_000)
    person.api(f"/sessions/{session}")
    act(person, "Not for long", "Delete…")
    expect(person.page.get_by_role("alert").filter(has_text="deleted in 10 seconds")).to_be_visible()
    person.page.clock.run_for(10_500)

    expect(row(person, "Not for long")).to_have_count(0)
    assert person.page.request.get(f"{person.base_url}/api/v1/sessions/{session}").status == 404


def test_deleting_while_an_answer_is_written_stops_it_first(person: Person) -> None:
    """T33: a running answer does not outlive the wish to delete it, also when that is undone."""
    session = person.start_chat("Running\n[[delay 100]] [[words 300]]")
    person.wait_for_text(5)

    person.page.get_by_label("Chat menu").click()
    person.page.get_by_role("link", name="Delete…").click()
    expect(person.page.get_by_role("alert").filter(has_text="The answer is stopped.")).to_be_visible()
    person.page.get_by_role("button", name="Undo").click()

    expect(person.pill).to_have_text("Stopped by you")
    assert person.api(f"/sessions/{session}/status")["state"] == "idle"


def test_a_search_is_kept_while_chats_are_opened(person: Person) -> None:
    for title in ("Apples of autumn", "Pears of autumn", "Nothing of the kind"):
        person.start_chat(title)
        person.wait_for_answer()
    person.page.keyboard.press("Control+k")
    person.page.keyboard.type("autumn")
    person.page.keyboard.press("Enter")
    chats = person.page.locator("[data-slot=chat-list] .chat-row")
    expect(chats).to_have_text([re.compile("Pears"), re.compile("Apples")])

    row(person, "Apples of autumn").get_by_role("link").click()

    expect(person.answers).to_contain_text("Apples of autumn")
    expect(chats).to_have_text([re.compile("Pears"), re.compile("Apples")])
    person.page.reload()
    expect(chats).to_have_count(2)


def test_a_chat_that_went_on_elsewhere_is_marked_as_news_until_it_is_read(person: Person) -> None:
    session = person.start_chat("News of the day")
    person.wait_for_answer()
    person.wait_until_idle()
    person.start_chat("Another one")
    person.wait_for_answer()
    mark = row(person, "News of the day").locator("[data-slot=mark]")
    expect(mark).to_have_attribute("data-mark", "")

    sent = person.page.request.post(
        f"{person.base_url}/api/v1/sessions/{session}/prompts",
        data={"text": "[[words 3]]"},
        headers={"X-CSRFToken": _token(person.page), "Referer": person.base_url},
    )
    assert sent.status == 201, sent.text()
    expect(mark).to_have_attribute("data-mark", "")
    person.page.wait_for_function(
        f"async () => (await (await fetch('/api/v1/sessions/{session}/status')).json()).state === 'idle'"
    )
    person.page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")

    expect(mark).to_have_attribute("data-mark", "unread")
    person.open(session)
    expect(mark).to_have_attribute("data-mark", "")


def test_agent_model_and_policy_are_chosen_before_the_first_message(person: Person, cook: None) -> None:
    person.page.goto(person.base_url)
    choose(person.page, "agent", "cook")
    expect(person.page.locator("[data-slot=recovery_policy]")).to_have_text("Stay stopped")
    choose(person.page, "recovery_policy", "Ask me")

    person.write("[[words 2]]")
    person.page.wait_for_url(re.compile("/s/ses_"))

    stored = person.api(f"/sessions/{person.session}")
    assert (stored["agent"], stored["model"], stored["recovery_policy"]) == ("cook", "demo:scripted", "ask")
    expect(person.page.locator("[data-slot=agent]")).to_have_text("cook")
    expect(person.page.locator("[data-slot=recovery_policy]")).to_have_text("Ask me")


def test_what_is_chosen_in_one_tab_shows_in_the_other_and_after_a_reload(person: Person, cook: None) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    other = person.another_tab()
    other.open(session)
    expect(other.answers).to_have_count(1)

    choose(person.page, "agent", "cook")
    choose(person.page, "recovery_policy", "Continue")

    for tab in (person, other):
        expect(tab.page.locator("[data-slot=agent]")).to_have_text("cook")
        expect(tab.page.locator("[data-slot=recovery_policy]")).to_have_text("Continue")
        expect(tab.page.get_by_text("The agent is now cook")).to_be_visible()
    person.page.reload()
    expect(person.page.locator("[data-slot=agent]")).to_have_text("cook")
    assert person.api(f"/sessions/{session}")["recovery_policy"] == "continue"


def test_a_model_that_does_not_exist_is_refused_where_it_was_asked_for(person: Person) -> None:
    person.start_chat("[[words 2]]")
    person.wait_for_answer()
    person.page.locator("[data-picker=model] summary").click()
    person.page.get_by_label("Another model").fill("nothing")
    person.page.get_by_role("button", name="Use").click()

    expect(person.page.locator("[data-picker=model]").get_by_role("alert")).to_contain_text("no model name")
    person.page.keyboard.press("Escape")
    expect(person.page.locator("[data-picker=model]")).not_to_have_attribute("open", "")
    expect(person.page.locator("[data-slot=model]")).to_have_text("demo:scripted")


def test_a_staged_revert_is_greyed_out_and_taken_back_in_every_tab(person: Person) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    person.wait_until_idle()
    other = person.another_tab()
    other.open(session)
    expect(other.answers).to_have_count(1)
    question = person.api(f"/sessions/{session}/messages")["results"][0]["id"]
    staged = person.page.request.post(
        f"{person.base_url}/api/v1/sessions/{session}/revert",
        data={"message_id": question},
        headers={"X-CSRFToken": _token(person.page), "Referer": person.base_url},
    )
    assert staged.status == 200, staged.text()
    for tab in (person, other):
        expect(tab.page.get_by_text("The next message takes the place")).to_be_visible()
        expect(tab.page.locator(f"[id={question}]")).to_have_attribute("data-staged", "")

    person.page.get_by_role("button", name="Keep it all").click()

    for tab in (person, other):
        expect(tab.page.get_by_text("The next message takes the place")).to_be_hidden()
        expect(tab.page.locator(f"[id={question}]")).not_to_have_attribute("data-staged", "")
    assert person.api(f"/sessions/{session}")["staged_revert"] is None


def _token(page: Page) -> str:
    return page.locator(".composer [name=csrfmiddlewaretoken]").get_attribute("value") or ""
