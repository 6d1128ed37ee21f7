"""A real Chromium and real processes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import people
from tests.browser.people import Person
from tests.support import servers
from tests.support.processes import Instance
from tests.support.requirements import need


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Ends with this folder: while Playwright runs, its event loop counts as running in the main thread."""
    need("chromium")
    # A machine that does many things at once is slow, not wrong.
    expect.set_options(timeout=people.PATIENCE)
    with sync_playwright() as playwright:
        # As root Chromium has no sandbox; tests load nothing but this project's own pages.
        browser = playwright.chromium.launch(
            executable_path=servers.chromium_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One running installation for the tests of a module; what is unknown is left to people."""
    directory = tmp_path_factory.mktemp("installation")
    with people.installation(directory, HOLDFAST_RECOVERY_POLICY="ask") as running:
        yield running


@pytest.fixture(scope="module")
def administrator(instance: Instance, chromium: Browser) -> Iterator[Person]:
    person = people.arrive(instance, chromium)
    yield person
    person.page.context.close()


@pytest.fixture
def person(administrator: Person, instance: Instance, chromium: Browser) -> Iterator[Person]:
    """The administrator in a browser of this test's own, whose pages must not raise or break the policy."""
    someone = people.sign_in(instance, chromium)
    complaints: list[str] = []
    someone.page.context.on("weberror", lambda error: complaints.append(str(error.error)))
    someone.page.context.on(
        "console",
        lambda message: (
            complaints.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    yield someone
    someone.page.context.close()
    assert complaints == []
