"""A person at the chat: what they do and what they see."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.support.processes import Instance
from tests.support.requirements import need
from tests.support.waiting import until

NAME: Final = "ann"
PASSWORD: Final = "correct horse battery"
PATIENCE: Final = 30_000
"""Milliseconds until something that should happen counts as not happening."""
SOON: Final = {
    "HOLDFAST_HEARTBEAT_SECONDS": "0.5",
    "HOLDFAST_LEASE_SECONDS": "2",
    "HOLDFAST_SWEEP_SECONDS": "1",
}
"""Of an installation that finds deaths fast."""
_LINK: Final = re.compile(r"Open (http\S+/first-run/\S+)")


_WATCH: Final = """
    window.holdfastTest = {
        seen: [],
        announced: [],
        shown() {
            const answers = document.querySelectorAll("[data-slot=transcript] [data-type=assistant]");
            const parts = answers.item(answers.length - 1)?.querySelectorAll("[data-kind=text] [data-slot=text]");
            return Array.from(parts ?? [], (part) => part.textContent).join("");
        },
        look() {
            const { seen, announced } = this;
            const text = this.shown();
            const said = document.querySelector("[role=status]")?.textContent ?? "";
            if (seen.at(-1) !== text) seen.push(text);
            if ((announced.at(-1) ?? "") !== said) announced.push(said);
        },
    };
    new MutationObserver(() => window.holdfastTest.look()).observe(document, {
        subtree: true, childList: true, characterData: true,
    });
"""
"""Notes every text that the newest answer ever shows, and every announcement."""


@contextmanager
def installation(directory: Path, **environ: str) -> Iterator[Instance]:
    """An installation that runs, with these variables in its environment."""
    need("chromium")
    with Instance.prepare(directory, **environ) as running:
        running.start()
        yield running


@dataclass(frozen=True, kw_only=True)
class Person:
    """One tab of one browser on one installation."""

    page: Page
    base_url: str

    # --- doing -------------------------------------------------------------------------------------------

    def start_chat(self, text: str) -> str:
        """Write the first message of a new chat; returns the session's id once it has one."""
        self.page.goto(f"{self.base_url}/")
        self.write(text)
        self.page.wait_for_url(re.compile(r"/s/ses_"))
        return self.session

    def open(self, session: str) -> None:
        self.page.goto(f"{self.base_url}/s/{session}")

    def write(self, text: str) -> None:
        self.composer.fill(text)
        self.composer.press("Enter")

    def stop(self) -> None:
        self.page.get_by_role("button", name="Stop", exact=True).click()

    def another_tab(self) -> "Person":
        return Person(page=self.page.context.new_page(), base_url=self.base_url)

    # --- seeing ------------------------------------------------------------------------------------------

    @property
    def session(self) -> str:
        return self.page.url.rpartition("/s/")[2].partition("?")[0].partition("#")[0]

    @property
    def composer(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message")

    @property
    def questions(self) -> Locator:
        return self.page.locator("[data-slot=transcript] [data-type=user] [data-slot=text]")

    @property
    def answers(self) -> Locator:
        return self.page.locator("[data-slot=transcript] [data-type=assistant]")

    @property
    def tray(self) -> Locator:
        return self.page.locator(".tray-row")

    @property
    def pill(self) -> Locator:
        return self.page.locator("[data-slot=pill]")

    @property
    def strip(self) -> Locator:
        return self.page.locator("[data-slot=connection]")

    def shown(self) -> str:
        """The text of the newest answer at this moment, exactly as the page holds it."""
        text: str = self.page.evaluate("() => window.holdfastTest.shown()")
        return text

    def seen(self) -> list[str]:
        """Every text that the newest answer has had on this page since it was loaded."""
        texts: list[str] = self.page.evaluate("() => window.holdfastTest.seen")
        return texts

    def wait_for_answer(self, count: int = 1, *, within: float = 60) -> None:
        """Until that many answers are there and the newest is complete."""
        expect(self.answers).to_have_count(count, timeout=within * 1000)
        expect(self.answers.last).to_have_attribute("data-state", "completed", timeout=within * 1000)

    def wait_until_idle(self) -> None:
        """Until the server says that nothing runs any more."""
        expect(self.composer).to_have_attribute("placeholder", "Message…")

    def wait_for_text(self, characters: int, *, within: float = 30) -> str:
        return until(
            lambda: text if len(text := self.shown()) >= characters else "",
            within=within,
            what=f"{characters} characters of an answer",
        )

    def api(self, path: str) -> Any:
        """What the API tells this person."""
        response = self.page.request.get(f"{self.base_url}/api/v1{path}")
        assert response.ok, f"{path}: {response.status} {response.text()}"
        return response.json()

    def stored_answer(self, session: str) -> str:
        """The newest answer as the database holds it."""
        messages = self.api(f"/sessions/{session}/messages?limit=200")["results"]
        newest = [message for message in messages if message["type"] == "assistant"][-1]
        return "".join(part["text"] for part in newest["parts"] if part["kind"] == "text")


def new_context(chromium: Browser, **options: Any) -> BrowserContext:
    context = chromium.new_context(
        viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options
    )
    context.set_default_timeout(PATIENCE)
    context.add_init_script(_WATCH)
    return context


def arrive(instance: Instance, chromium: Browser, **options: Any) -> Person:
    """The first person of a fresh installation: opens the printed link and makes the account."""
    page = new_context(chromium, **options).new_page()
    page.goto(first_run_link(instance))
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create administrator").click()
    person = Person(page=page, base_url=instance.base_url)
    expect(person.composer).to_be_visible()
    return person


def sign_in(instance: Instance, chromium: Browser, **options: Any) -> Person:
    page = new_context(chromium, **options).new_page()
    page.goto(f"{instance.base_url}/sign-in")
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    person = Person(page=page, base_url=instance.base_url)
    expect(person.composer).to_be_visible()
    return person


def first_run_link(instance: Instance) -> str:
    """The newest link that ``up`` has printed."""
    until(lambda: _LINK.findall(instance.output), within=30, what="a first-run link in the output of up")
    return str(_LINK.findall(instance.output)[-1])
