"""axe finds nothing on any page; what can be done with the mouse can be done with the keyboard."""

from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.people import Person
from tests.support.processes import PROJECT, Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")

_AXE: Final = PROJECT / "node_modules" / "axe-core" / "axe.min.js"
_RUN: Final = """async (within) => {
    const rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"];
    const { violations } = await axe.run(document.querySelector(within), { runOnly: rules });
    return violations.map(({ id, nodes }) => [id, nodes.map(({ target }) => target.join(" ")).slice(0, 3)]);
}"""


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


def violations(page: Page, *, within: str = "html") -> Any:
    page.evaluate(_AXE.read_text())
    return page.evaluate(_RUN, within)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(person: Person, instance: Instance, scheme: Any) -> None:
    page = person.page
    page.emulate_media(color_scheme=scheme)
    for path in ("/", "/settings", "/?q=nothing-like-it", "/s/ses_nowhere"):
        page.goto(instance.base_url + path)
        assert violations(page) == [], path
    session = person.start_chat(
        '[[tool calculator {"expression": "1"}]] [[tool current_time {}]] [[then ```js\nlet x = 1\n```]]'
    )
    person.wait_for_answer(2)
    person.wait_until_idle()
    page.get_by_text("Used 2 tools").click()
    for popup in page.locator("details[data-role=popup] > summary").all():
        popup.click()
        assert violations(page) == [], "a chat with tools and what opens over it"
        page.keyboard.press("Escape")
    page.locator(".row-more").first.focus()
    page.keyboard.press("Enter")
    assert violations(page) == [], "the menu of a row"
    page.keyboard.press("Escape")
    for path in (f"/s/{session}/timeline", f"/s/{session}/delete", f"/s/{session}?before=3"):
        page.goto(instance.base_url + path)
        assert violations(page) == [], path
    page.goto(f"{instance.base_url}/settings")
    page.get_by_role("button", name="Make a token").click()
    page.get_by_role("button", name="Change the password").evaluate(
        "(button) => { button.form.noValidate = true; }"
    )
    assert violations(page) == [], "a new token"
    page.get_by_role("button", name="Change the password").click()
    expect(page.locator(".error").first).to_be_visible()
    assert violations(page) == [], "a password that is refused"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_state_of_a_chat(person: Person, scheme: Any) -> None:
    page = person.page
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    person.start_chat("[[delay 60]] [[words 400]]")
    person.wait_for_text(20)
    person.write("waits")
    expect(person.tray).to_have_count(1)
    assert violations(page) == [], "streaming with a queue"
    person.stop()
    expect(person.pill).to_have_text("Paused")
    assert violations(page) == [], "stopped and paused"
    person.start_chat("[[error partial]] [[words 9]]")
    expect(page.locator("[data-slot=transcript] [data-slot=card]")).to_be_visible()
    person.wait_until_idle()
    assert violations(page) == [], "an unknown outcome"
    person.start_chat("[[error rejected]]")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert violations(page) == [], "a failed answer"
    page.set_viewport_size({"width": 390, "height": 800})
    assert violations(page) == [], "on a phone"
    page.get_by_role("link", name="Show the list of chats").click()
    assert violations(page) == [], "the list on a phone"


def test_axe_finds_nothing_before_signing_in(instance: Instance, chromium: Browser, person: Person) -> None:
    context = chromium.new_context()
    page = context.new_page()
    for path in ("/sign-in", "/first-run/unknown"):
        page.goto(instance.base_url + path)
        assert violations(page) == [], path
    page.goto(f"{instance.base_url}/sign-in")
    page.get_by_label("Username").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert violations(page) == [], "a wrong password"
    context.close()


def test_axe_finds_nothing_of_ours_on_the_pages_of_decisions(person: Person) -> None:
    """What surrounds them is Django's."""
    page = person.page
    person.start_chat("[[error partial]] [[words 9]]")
    expect(page.locator("[data-slot=transcript] [data-slot=card]")).to_be_visible()
    page.goto(f"{person.base_url}/admin/sessions_app/providerattempt/?state=unknown")
    page.locator("input[name=_selected_action]").first.check()
    page.locator("select[name=action]").select_option("abandon")
    page.locator(".actions button[type=submit]").click()
    expect(page.get_by_text("A decision is made once")).to_be_visible()

    assert violations(page, within="#content") == []


def test_a_chat_is_deleted_after_ten_seconds_unless_it_is_undone(person: Person) -> None:
    page = person.page
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    page.clock.install()
    for name in ("Chat menu", "Delete…"):
        page.get_by_label(name).or_(page.get_by_role("link", name=name)).press("Enter")
    page.get_by_role("button", name="Undo").press("Enter")
    page.clock.run_for(11_000)
    person.api(f"/sessions/{session}")

    page.get_by_label("Chat menu").press("Enter")
    page.get_by_role("link", name="Delete…").press("Enter")
    expect(page.get_by_role("alert").filter(has_text="deleted in 10 seconds")).to_be_visible()
    page.clock.run_for(10_100)

    page.wait_for_url(person.base_url + "/")
    assert page.request.get(f"{person.base_url}/api/v1/sessions/{session}").status == 404


def test_an_edited_message_replaces_what_followed_in_every_tab(person: Person) -> None:
    session = person.start_chat("[[words 3]]")
    person.wait_for_answer()
    person.write("[[words 4]]")
    person.wait_for_answer(2)
    person.wait_until_idle()
    other = person.another_tab()
    other.open(session)
    expect(other.answers).to_have_count(2)

    person.page.get_by_label("Edit and send again").first.focus()
    person.page.get_by_label("Edit and send again").first.press("Enter")
    expect(person.composer).to_have_value("[[words 3]]")
    person.write("[[words 5]]")

    for tab in (person, other):
        expect(tab.questions).to_have_text(["[[words 5]]"])
        tab.wait_for_answer()
        assert tab.shown() == "1 2 3 4 5"
    person.page.get_by_role("button", name="Regenerate").click()
    for tab in (person, other):
        tab.wait_for_answer()
        expect(tab.questions).to_have_text(["[[words 5]]"])
