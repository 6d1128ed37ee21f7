"""Takes pictures of the main states: ``python -m tests.browser.screenshots DIRECTORY``."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import people
from tests.browser.people import Person
from tests.support import servers
from tests.support.processes import Instance

QUESTION = "Why does Holdfast write a prompt to its log before it answers? [[delay 60]]"
TOOLS = (
    "What is 19 with 18 percent off?\n\n"
    '[[tool calculator {"expression": "19 * 0.82"}]] [[tool current_time {"zone": "UTC"}]]'
    '[[tool fetch_page {"url": "http://127.0.0.1/"}]]'
)
ANSWER = """[[then two ways to say it.

| way | result |
|---|--:|
| by hand | 15.58 |
| in **Python** | 15.58 |

```python
def price(full: float) -> float:
    return round(full * 0.82, 2)  # one place
```
]]"""
NOTE = (
    "Put bread, olives and lemons on my list.\n\n"
    '[[tool notebook {"action": "write", "name": "plans", "text": "Bread, olives, lemons"}]] [[then Noted.]]'
)
ASKS = (
    "from sessions_app.models import Agent; "
    "Agent.objects.create(name='default', tool_modes={'notebook': 'ask'})"
)
FIRST_CHATS = ("Plan a week of simple dinners for two", "Compare SQLite and PostgreSQL for one machine")


def take_all(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with _chromium() as chromium, _installation() as instance:
        _first_run(instance, chromium, directory)
        person = people.arrive(instance, chromium)
        for text in FIRST_CHATS:
            person.start_chat(text)
            person.wait_for_answer()
        _conversation(person, directory)
        _tools(person, directory)
        _troubles(person, directory)
        _dark(instance, chromium, person.session, directory)
        _phone(instance, chromium, person.session, directory)


def _first_run(instance: Instance, chromium: Browser, directory: Path) -> None:
    page = people.new_context(chromium).new_page()
    page.goto(people.first_run_link(instance))
    page.screenshot(path=directory / "first-run.png")
    page.context.close()


def _conversation(person: Person, directory: Path) -> None:
    person.page.goto(person.base_url)
    _take(person, directory / "empty.png")
    person.start_chat(QUESTION)
    person.wait_for_text(40)
    person.write("And what happens to this one when the server stops?")
    expect(person.tray).to_contain_text("Queued")
    _take(person, directory / "streaming.png")
    person.wait_for_answer(2)
    person.wait_until_idle()
    _take(person, directory / "done.png")


def _choices(person: Person, directory: Path) -> None:
    person.page.locator("[data-picker=recovery_policy] summary").click()
    _take(person, directory / "pickers.png")
    person.page.keyboard.press("Escape")
    row = person.page.locator(".chat-line").nth(1)
    row.hover()
    row.get_by_role("button").click()
    _take(person, directory / "row-menu.png")
    person.page.keyboard.press("Escape")
    person.page.goto(f"{person.base_url}/s/{person.session}/timeline")
    _take(person, directory / "timeline.png")
    person.page.goto(f"{person.base_url}/settings")
    _take(person, directory / "settings.png")
    person.page.go_back()
    person.page.go_back()


def _tools(person: Person, directory: Path) -> None:
    person.start_chat(f"{TOOLS} {ANSWER}")
    person.wait_for_answer(2)
    person.wait_until_idle()
    person.page.get_by_text("Used 2 tools").click()
    _take(person, directory / "tools.png")
    person.start_chat(NOTE)
    expect(person.page.locator("[data-slot=transcript] [data-slot=card]")).to_be_visible()
    expect(person.page.locator("[data-slot=banner-first]")).to_be_visible()
    _take(person, directory / "approval.png")
    person.page.get_by_role("button", name="Allow once").click()
    person.wait_for_answer(2)
    _choices(person, directory)


def _troubles(person: Person, directory: Path) -> None:
    person.start_chat(
        "Count for me.\n\n[[reason First I look at what is known.]] [[error partial]] [[words 24]]"
    )
    card = person.page.locator("[data-slot=transcript] [data-slot=card]")
    expect(card).to_be_visible()
    person.wait_until_idle()
    _take(person, directory / "unknown.png")
    person.page.get_by_role("button", name="Abandon").click()
    person.page.get_by_role("button", name="Confirm?").click()
    expect(card.locator("summary")).to_contain_text("Abandoned by")
    person.write("[[delay 60]] [[words 60]]")
    person.wait_for_text(30)
    person.stop()
    expect(person.answers.last).to_contain_text("Stopped by you.")
    person.write("[[error rejected]]")
    expect(person.answers.last).to_contain_text("refused")
    person.wait_until_idle()
    _take(person, directory / "outcomes.png")
    person.page.context.set_offline(True)
    person.write("Is anybody there?")
    expect(person.strip).to_be_visible()
    expect(person.page.get_by_text("Not sent yet")).to_be_visible(timeout=10_000)
    _take(person, directory / "offline.png")
    person.page.context.set_offline(False)
    expect(person.page.get_by_text("Not sent yet")).to_be_hidden()


def _dark(instance: Instance, chromium: Browser, session: str, directory: Path) -> None:
    person = people.sign_in(instance, chromium, color_scheme="dark")
    person.open(session)
    _take(person, directory / "dark.png")
    person.page.context.close()


def _phone(instance: Instance, chromium: Browser, session: str, directory: Path) -> None:
    person = people.sign_in(
        instance,
        chromium,
        viewport={"width": 390, "height": 780},
        has_touch=True,
        device_scale_factor=2,
        color_scheme="dark",
    )
    person.open(session)
    _take(person, directory / "phone.png")
    person.page.get_by_role("link", name="Show the list of chats").click()
    person.page.wait_for_timeout(300)
    _take(person, directory / "phone-chats.png")
    person.page.context.close()


def _take(person: Person, path: Path) -> None:
    person.page.screenshot(path=path, animations="disabled")


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=servers.chromium_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@contextmanager
def _installation() -> Iterator[Instance]:
    with (
        tempfile.TemporaryDirectory() as directory,
        Instance.prepare(Path(directory), HOLDFAST_RECOVERY_POLICY="ask") as instance,
    ):
        instance.start()
        instance.manage("shell", "-c", ASKS)
        yield instance


if __name__ == "__main__":
    take_all(Path(sys.argv[1]))
