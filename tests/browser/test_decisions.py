"""Tools, retries and decisions in a real browser: what comes live is what a reload shows."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import people
from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")

_ASKS = "from sessions_app.models import Agent; Agent.objects.create(name='default', tool_modes={'notebook': 'ask'})"
NOTE = (
    '[[tool notebook {"action": "write", "name": "plans", "text": "Buy <b>bread</b>"}]] [[then [[words 5]]]]'
)


@pytest.fixture(scope="module")
def hook() -> Iterator[str]:
    """Where a webhook is taken and never answered."""
    released = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            released.wait(120)

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory, hook: str) -> Iterator[Instance]:
    """Asks before a note is written, leaves what is unknown to people, and finds deaths fast."""
    directory = tmp_path_factory.mktemp("installation")
    with people.installation(
        directory, HOLDFAST_RECOVERY_POLICY="ask", HOLDFAST_WEBHOOK_URLS=hook, **people.SOON
    ) as running:
        running.manage("shell", "-c", _ASKS)
        yield running


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


def card(page: Page) -> Locator:
    return page.locator("[data-slot=transcript] [data-slot=card]")


def choose(person: Person, name: str) -> None:
    person.page.get_by_role("button", name=name, exact=True).click()


def expect_the_same_after_reload(person: Person) -> None:
    transcript = person.page.locator("[data-slot=transcript]")
    before = transcript.inner_text()
    person.page.reload()
    expect(transcript).to_have_text(re.compile(re.escape(before.split()[0])))
    assert transcript.inner_text() == before


def test_tools_are_calm_and_a_failing_one_stands_out(person: Person) -> None:
    person.start_chat(
        '[[tool calculator {"expression": "6*7"}]] [[tool current_time {"zone": "UTC"}]]'
        '[[tool calculator {"expression": "1/0"}]]'
    )
    person.wait_for_answer(2)

    expect(person.page.get_by_text("Used 2 tools")).to_be_visible()
    expect(person.page.get_by_text("calculator failed", exact=True)).to_be_visible()
    expect(person.page.get_by_text("Used calculator")).to_be_hidden()
    person.page.get_by_text("Used 2 tools").click()
    person.page.get_by_text("Used calculator").click()
    expect(person.page.locator("[data-slot=input]").first).to_have_text('{ "expression": "6*7" }')
    person.page.reload()
    expect_the_same_after_reload(person)


def test_an_approval_survives_a_reload_and_the_first_answer_is_told_to_the_other_tab(person: Person) -> None:
    session = person.start_chat(NOTE)
    other = person.another_tab()
    other.open(session)
    for tab in (person, other):
        expect(card(tab.page)).to_contain_text("Allow notebook?")
        expect(tab.page.locator("[data-slot=input]")).to_contain_text("Buy <b>bread</b>")
        expect(tab.page.locator("[data-slot=banner]")).to_contain_text("1 item needs your decision")
    expect_the_same_after_reload(person)
    expect(person.page.locator(f"[data-chat={session}] [data-slot=mark]")).to_have_attribute(
        "data-mark", "decision"
    )

    person.page.get_by_placeholder("Reason (optional)").fill("it is my list")
    choose(person, "Allow once")

    for tab in (person, other):
        expect(card(tab.page).locator("summary")).to_contain_text("Allowed once by ann")
        expect(card(tab.page).locator("summary")).to_contain_text("it is my list")
        expect(tab.page.locator("[data-slot=banner]")).to_be_hidden()
        tab.wait_for_answer(2)
    person.wait_until_idle()
    expect_the_same_after_reload(person)


def test_the_second_of_two_answers_is_told_the_first(person: Person) -> None:
    session = person.start_chat(NOTE)
    expect(card(person.page)).to_contain_text("Allow notebook?")
    late = person.another_tab()
    late.page.route("**/ws/**", lambda route: route.abort())
    late.page.route_web_socket(re.compile("/ws/"), lambda socket: None)
    late.open(session)
    expect(card(late.page)).to_contain_text("Allow notebook?")

    choose(person, "Deny")
    expect(card(person.page).locator("summary")).to_contain_text("Denied by ann")
    choose(late, "Allow once")

    expect(card(late.page).locator("summary")).to_contain_text("Already decided: Denied by ann")


def test_an_unknown_attempt_is_tried_again_with_two_clicks(person: Person) -> None:
    person.start_chat("[[error partial 1]] [[words 20]]")
    expect(card(person.page)).to_contain_text("Received 20 of ? characters")
    expect(person.pill).to_contain_text("outcome unknown")
    expect_the_same_after_reload(person)

    choose(person, "Retry")
    expect(card(person.page)).to_have_attribute("data-decided", "false")
    choose(person, "Confirm?")

    expect(card(person.page).first.locator("summary")).to_contain_text("Tried again by ann")
    expect(person.answers).to_have_count(2)
    expect(person.page.get_by_text("The answer is tried again")).to_be_visible()


def test_a_first_click_is_forgotten_after_a_moment(person: Person) -> None:
    person.page.clock.install()
    person.start_chat("[[error partial]] [[words 4]]")
    choose(person, "Abandon")

    person.page.clock.run_for(4100)

    expect(person.page.get_by_role("button", name="Abandon", exact=True)).to_be_visible()
    expect(card(person.page)).to_have_attribute("data-decided", "false")


def test_a_call_whose_worker_was_killed_is_marked_as_done(
    person: Person, instance: Instance, hook: str
) -> None:
    person.start_chat(f'[[tool send_webhook {{"url": "{hook}", "payload": {{"to": "all"}}}}]]')
    expect(person.page.get_by_text("Running send_webhook…")).to_be_visible()

    instance.kill("worker")

    expect(card(person.page)).to_contain_text("Result not recorded", timeout=60_000)
    expect(card(person.page)).to_contain_text("may already have changed something")
    expect_the_same_after_reload(person)
    choose(person, "Mark as done…")
    person.page.get_by_label("What it returned").fill("accepted")
    choose(person, "Mark as done")
    expect(card(person.page).locator("summary")).to_contain_text("Marked as done by ann")
    expect(person.answers.last).to_contain_text("accepted", timeout=30_000)


def test_a_rate_limit_counts_down_and_can_be_given_up(person: Person) -> None:
    person.start_chat("[[error rate_limit]] [[words 5]]")
    retry = person.page.locator("[data-slot=transcript] [data-slot=retry]")
    expect(retry).to_contain_text(re.compile(r"Attempt 3 follows in \d s"))
    person.page.reload()
    expect(retry).to_contain_text(re.compile(r"rate limited\.\s+Attempt [34] follows in \d+ s"))
    expect(person.pill).to_contain_text("Trying again")

    choose(person, "Stop trying")

    expect(person.answers.last).to_contain_text("Stopped by you.")
    expect(retry).to_be_hidden()


def test_a_rate_limit_that_ends_is_answered(person: Person) -> None:
    person.start_chat("[[error rate_limit 1]] [[words 5]]")
    expect(person.page.locator("[data-slot=transcript] [data-slot=retry]")).to_be_visible()

    person.wait_for_answer()

    expect(person.page.locator("[data-slot=transcript] [data-slot=retry]")).to_be_hidden()


def test_without_scripts_a_form_decides(instance: Instance, chromium: Browser, person: Person) -> None:
    session = person.start_chat(NOTE)
    expect(card(person.page)).to_contain_text("Allow notebook?")
    context = chromium.new_context(
        java_script_enabled=False, storage_state=person.page.context.storage_state()
    )
    page = context.new_page()
    page.goto(f"{instance.base_url}/s/{session}")

    page.get_by_role("button", name="Deny").click()

    expect(card(page).locator("summary")).to_contain_text("Denied by ann")
    page.context.close()
    expect(card(person.page).locator("summary")).to_contain_text("Denied by ann")
