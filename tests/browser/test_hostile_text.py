"""Hostile text in every place of a real browser that shows it: nothing fires, and nothing is added to the page."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser import people
from tests.browser.people import NAME, Person
from tests.support.processes import Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")

PAYLOADS: Final = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<svg onload=alert(1)></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "</textarea></title></script></template><script>alert(1)</script>",
    "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) ![x](data:text/html,<script>alert(1)</script>)",
    '<a href="vbscript:alert(1)" onclick="alert(1)">x</a>',
    "<details open ontoggle=alert(1)>",
)
TEXT: Final = " ".join(PAYLOADS)
_ADDED: Final = (
    "img[src=x], iframe[srcdoc], svg[onload], [onerror], [onclick], [ontoggle], a[href^='javascript' i], "
    "a[href^='vbscript' i], a[href^='data:text' i], img[src^='data:']"
)
_CLICK: Final = """() => {
    for (const each of document.querySelectorAll("[data-slot=transcript] :is(summary, a)")) {
        each.addEventListener("click", (event) => each.tagName === "A" && event.preventDefault());
        each.click();
    }
}"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    directory = tmp_path_factory.mktemp("installation")
    with people.installation(
        directory, HOLDFAST_RECOVERY_POLICY="ask", HOLDFAST_TOOLS="tests.browser.ledger"
    ) as running:
        yield running


@pytest.fixture
def fired(person: Person) -> list[str]:
    """What a probe would have said."""
    said: list[str] = []

    watch(person.page, said)
    return said


def watch(page: Page, said: list[str]) -> None:
    def note(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


def assert_harmless(page: Page, fired: list[str], where: str) -> None:
    page.wait_for_load_state("load")
    assert fired == [], where
    assert page.locator(_ADDED).count() == 0, where


def test_the_probe_would_fire(person: Person, fired: list[str]) -> None:
    page = person.page.context.new_page()
    watch(page, fired)
    page.set_content("".join(PAYLOADS[:3]))

    expect(page.locator("img[src=x]")).to_have_count(1)
    page.wait_for_function("() => document.images[0].complete")
    assert fired


def test_hostile_text_is_text_in_every_place(person: Person, fired: list[str]) -> None:
    """T30."""
    page = person.page
    session = person.start_chat(f"{TEXT}\n[[delay 5]] {TEXT}")
    assert_harmless(page, fired, "while it streams")
    person.wait_for_answer()
    assert "<img src=x onerror=alert(1)>" in person.shown()
    page.evaluate(_CLICK)
    assert_harmless(page, fired, "live")
    person.write("[[tool echo " + '{"text": "' + PAYLOADS[0] + PAYLOADS[1] + '"}]]')
    person.wait_for_answer(3)
    person.wait_until_idle()
    page.evaluate(_CLICK)
    assert_harmless(page, fired, "a tool")
    page.reload()
    expect(person.answers).to_have_count(3)
    page.evaluate(_CLICK)
    assert_harmless(page, fired, "after a reload")

    for path in (
        f"/s/{session}/timeline",
        f"/s/{session}?q=%3Cimg%20src%3Dx",
        "/?q=" + "%3Cscript%3Ealert(1)%3C/script%3E",
        "/?agent=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&model=%3Csvg%20onload%3Dalert(1)%3E",
        f"/s/{session}/delete",
        f"/s/{session}?edit=" + person.api(f"/sessions/{session}/messages")["results"][0]["id"],
        "/admin/sessions_app/session/",
        f"/admin/sessions_app/session/{session}/change/",
        "/admin/sessions_app/sessionmessage/",
        "/admin/sessions_app/messagepart/",
        "/admin/sessions_app/providerattempt/",
    ):
        page.goto(person.base_url + path)
        assert_harmless(page, fired, path)


def test_what_people_write_elsewhere_is_text_too(
    person: Person, instance: Instance, fired: list[str]
) -> None:
    page = person.page
    page.goto(f"{person.base_url}/settings")
    page.get_by_label("What it is for").fill(TEXT[:100])
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator(".tokens")).to_contain_text("<img src=x onerror=alert(1)>")
    assert_harmless(page, fired, "the name of a token")
    instance.manage(
        "shell", "-c",
        "from sessions_app.models import Agent; from django.contrib.auth.models import User; "
        f"Agent.objects.create(name={PAYLOADS[0]!r}); "
        f"User.objects.filter(username={NAME!r}).update(first_name={PAYLOADS[1]!r})",
    )  # fmt: skip
    page.goto(person.base_url)
    page.locator("[data-picker=agent] summary").click()
    expect(page.locator("[data-picker=agent]")).to_contain_text(PAYLOADS[0])
    expect(page.locator("[data-slot=greeting]")).to_contain_text(PAYLOADS[1])
    assert_harmless(page, fired, "an agent and a name")


def test_an_export_is_a_file_and_no_page(person: Person) -> None:
    session = person.start_chat(TEXT)
    person.wait_for_answer()

    for form in ("markdown", "json"):
        answer = person.page.request.get(f"{person.base_url}/api/v1/sessions/{session}/export?format={form}")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "html" not in answer.headers["content-type"]
        assert answer.headers["x-content-type-options"] == "nosniff"
