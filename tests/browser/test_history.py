"""Long conversations: opened at the end, read backwards without losing the place; a question stands at the top."""

import pytest
from playwright.sync_api import expect

from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires
from tests.support.waiting import until

pytestmark = requires("chromium")

MESSAGES = 5000
_FILL = """
from django.utils import timezone
from sessions_app import identity
from sessions_app.models import Session, SessionMessage
session, now = Session.objects.get(pk={session!r}), timezone.now()
SessionMessage.objects.bulk_create(
    SessionMessage(
        id=f"msg_long-{{number:06}}", session=session, seq=session.head_seq + 1 + number, type="user", state="completed",
        created_at=now, completed_at=now, origin="user", text=f"message {{number}} " + "word " * (number % 40),
    )
    for number in range({count})
)
Session.objects.filter(pk=session.pk).update(head_seq=session.head_seq + {count})
"""
_PLACE = """() => {
    const scroller = document.querySelector("[data-slot=scroller]");
    const top = scroller.getBoundingClientRect().top;
    const first = Array.from(scroller.querySelectorAll("[data-message]"))
        .find((each) => each.getBoundingClientRect().bottom > top);
    return [first.dataset.message, Math.round(first.getBoundingClientRect().top - top)];
}"""


@pytest.fixture(autouse=True)
def _arrived(administrator: Person) -> None:
    """The account exists."""


def test_a_conversation_of_5000_messages_opens_at_its_end_and_is_read_backwards_in_place(
    person: Person, instance: Instance
) -> None:
    session = person.start_chat("[[words 3]]")
    person.wait_for_answer()
    person.wait_until_idle()
    instance.manage("shell", "-c", _FILL.format(session=session, count=MESSAGES))
    person.page.reload()
    messages = person.page.locator("[data-slot=transcript] [data-message]")
    expect(person.page.get_by_text(f"message {MESSAGES - 1} ")).to_be_in_viewport()
    begun_with = messages.count()
    assert begun_with <= 110

    person.page.evaluate("() => document.querySelector('[data-slot=scroller]').scrollTo(0, 500)")
    until(lambda: messages.count() > begun_with, within=30, what="earlier messages")
    for _ in range(3):
        before, count = person.page.evaluate(_PLACE), messages.count()
        person.page.locator("[data-slot=earlier]").evaluate("(link) => link.click()")
        until(lambda count=count: messages.count() > count, within=30, what="still earlier messages")  # type: ignore[misc]
        assert person.page.evaluate(_PLACE) == before
    ids = messages.evaluate_all("(all) => all.map(({ dataset }) => Number(dataset.seq))")
    assert ids == sorted(set(ids))

    person.page.get_by_role("button", name="Jump to the newest answer").click()
    person.write("[[words 4]]")
    person.wait_for_answer(1)
    assert person.shown() == "1 2 3 4"


def test_a_question_goes_to_the_top_and_its_answer_grows_below_until_the_reader_moves(person: Person) -> None:
    person.start_chat("[[words 300]]")
    person.wait_for_answer()
    person.wait_until_idle()
    person.write("[[delay 4]] [[words 2500]]")
    question = person.page.locator(".turn.user").last
    top = person.page.locator("[data-slot=scroller]").bounding_box()
    assert top is not None

    until(
        lambda: abs((question.bounding_box() or top)["y"] - top["y"]) < 40,
        within=30,
        what="the question at the top of the view",
    )
    person.wait_for_text(4000)
    end = person.page.locator("[data-slot=flow]")
    assert (question.bounding_box() or top)["y"] < top["y"], "the end is followed once it is below the view"
    jump = person.page.get_by_role("button", name="Jump to the newest answer")
    expect(jump).to_be_hidden()
    person.page.mouse.move(700, 400)
    person.page.mouse.wheel(0, -400)
    expect(jump).to_be_visible()
    stays_at = end.bounding_box()
    person.wait_for_text(6000)
    assert stays_at is not None
    assert (end.bounding_box() or stays_at)["y"] == stays_at["y"]
    jump.click()
    expect(jump).to_be_hidden()
