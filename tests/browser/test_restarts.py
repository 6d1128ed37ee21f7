"""The whole server goes and comes back while the page stays open."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import people
from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")

WHOLE = " ".join(map(str, range(1, 201)))


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """Leaves what is unknown to people, and finds deaths fast."""
    directory = tmp_path_factory.mktemp("installation")
    with people.installation(directory, HOLDFAST_RECOVERY_POLICY="ask", **people.SOON) as running:
        yield running


@pytest.fixture
def person(instance: Instance, chromium: Browser) -> Iterator[Person]:
    someone = people.arrive(instance, chromium) if "first-run" in instance.output else None
    assert someone is not None
    yield someone
    someone.page.context.close()


def test_killed_in_the_middle_the_server_comes_back_and_the_same_chat_goes_on(
    instance: Instance, person: Person
) -> None:
    """T02, T03, T08: what was received is kept and marked, no spinner is left, the next message joins it."""
    session = person.start_chat("[[delay 50]] [[words 200]]")
    before = person.wait_for_text(60)

    instance.kill_everything()
    expect(person.strip).to_contain_text("Connection lost. Your text is safe.")
    person.write("[[words 3]]")
    expect(person.page.get_by_text("Not sent yet")).to_be_visible()
    instance.start()

    expect(person.questions).to_have_count(2, timeout=90_000)
    expect(person.answers.last).to_contain_text("1 2 3", timeout=90_000)
    person.wait_for_answer(2)
    first = person.answers.first.locator("[data-kind=text] [data-slot=text]").inner_text()
    assert WHOLE.startswith(first)
    assert len(first) < len(WHOLE)
    # The newest checkpoint is about a second old.
    assert len(first) >= len(before) - 120
    expect(person.answers.first).to_have_attribute("data-state", "unknown")
    expect(person.answers.first.locator("[data-slot=card]")).to_contain_text("Whether the model answered")
    assert person.session == session
    assert len(person.api("/sessions")["results"]) == 1
    prompts = person.api(f"/sessions/{session}/prompts?state=all")["results"]
    assert [prompt["text"] for prompt in prompts] == ["[[delay 50]] [[words 200]]", "[[words 3]]"]
