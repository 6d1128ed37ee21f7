"""A conversation in a real browser on real processes."""

import re

from playwright.sync_api import Browser, expect

from tests.browser import people
from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires

pytestmark = requires("chromium")

COUNT_SLOWLY = "[[delay 40]] [[words 120]]"


def test_from_the_printed_link_to_a_streamed_answer(administrator: Person) -> None:
    session = administrator.start_chat("[[delay 20]] [[words 50]]")

    administrator.wait_for_answer()

    assert administrator.shown() == " ".join(map(str, range(1, 51))) == administrator.stored_answer(session)
    assert len(administrator.seen()) > 10
    expect(administrator.questions).to_have_text(["[[delay 20]] [[words 50]]"])
    expect(administrator.page.locator(".chat-row[aria-current]")).to_have_attribute("data-chat", session)
    expect(administrator.pill).to_be_hidden()


def test_what_was_sent_is_on_the_page_at_once_and_the_composer_is_ready_for_more(person: Person) -> None:
    person.page.goto(person.base_url)
    person.page.route("**/api/v1/sessions", lambda route: None)

    person.write("Hello")

    bubble = person.page.locator("[data-slot=ahead] [data-type=user], [data-slot=ahead] .turn.user")
    expect(bubble).to_contain_text("Hello")
    expect(bubble).to_contain_text("Sending…")
    expect(person.composer).to_have_value("")
    expect(person.composer).to_be_focused()


def test_two_tabs_see_the_same_answer_and_the_same_queue(person: Person) -> None:
    session = person.start_chat(COUNT_SLOWLY)
    other = person.another_tab()
    other.open(session)
    person.wait_for_text(20)

    other.write("[[words 3]]")
    for tab in (person, other):
        expect(tab.tray).to_have_count(1)
        expect(tab.tray).to_contain_text("Queued")
        expect(tab.tray).to_contain_text("[[words 3]]")

    for tab in (person, other):
        tab.wait_for_answer(2)
        expect(tab.answers).to_have_text([re.compile(r"\b120\b"), re.compile("1 2 3")])
        expect(tab.questions).to_have_text([COUNT_SLOWLY, "[[words 3]]"])
        expect(tab.tray).to_have_count(0)


def test_two_tabs_that_send_at_once_both_get_through(person: Person) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    other = person.another_tab()
    other.open(session)

    person.composer.fill("from the first tab")
    other.composer.fill("from the second tab")
    person.composer.press("Enter")
    other.composer.press("Enter")

    for tab in (person, other):
        expect(tab.questions).to_have_count(3)
        expect(tab.questions.filter(has_text="from the")).to_have_count(2)
    states = {prompt["state"] for prompt in person.api(f"/sessions/{session}/prompts?state=all")["results"]}
    assert states == {"promoted"}


def test_stop_says_so_at_once_and_keeps_what_was_received(person: Person) -> None:
    session = person.start_chat(COUNT_SLOWLY)
    person.wait_for_text(30)

    person.stop()

    expect(person.pill).to_have_text("Stopped by you")
    expect(person.answers.last).to_contain_text("Stopped by you.")
    whole = " ".join(map(str, range(1, 121)))
    assert person.shown() == person.stored_answer(session)
    assert whole.startswith(person.shown())
    assert len(person.shown()) < len(whole)
    expect(person.page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def test_the_text_stands_still_from_the_moment_of_stop(person: Person) -> None:
    person.start_chat(COUNT_SLOWLY)
    person.wait_for_text(30)
    person.page.evaluate(
        "() => { WebSocket.prototype.send = () => {}; }"  # The server does not hear of it.
    )

    person.stop()
    at_stop = person.shown()

    expect(person.pill).to_have_text("Stopping…")
    expect(person.page.get_by_role("button", name="Stopping…")).to_be_disabled()
    person.page.wait_for_timeout(400)
    assert person.shown() == at_stop
    person.wait_for_answer()
    assert person.shown() == " ".join(map(str, range(1, 121)))


def test_a_steer_is_read_at_the_next_step_and_a_withdrawn_prompt_never(person: Person) -> None:
    session = person.start_chat(COUNT_SLOWLY)
    person.wait_for_text(10)
    person.composer.fill("[[words 4]]")
    person.composer.press("Control+Enter")
    person.write("never mind")
    expect(person.tray).to_have_count(2)

    person.tray.filter(has_text="never mind").get_by_role("button", name="Withdraw").click()

    expect(person.tray).to_have_count(1)
    expect(person.tray).to_contain_text("Read at the next step")
    person.wait_for_answer(2)
    assert person.shown() == "1 2 3 4"
    prompts = person.api(f"/sessions/{session}/prompts?state=all")["results"]
    assert [(each["text"], each["state"]) for each in prompts][1:] == [
        ("[[words 4]]", "promoted"),
        ("never mind", "withdrawn"),
    ]


def test_a_stop_pauses_what_waits_until_resume(person: Person) -> None:
    person.start_chat(COUNT_SLOWLY)
    person.wait_for_text(10)
    person.write("[[words 5]]")
    expect(person.tray).to_contain_text("Queued")
    person.stop()
    expect(person.pill).to_have_text("Paused")

    person.page.get_by_role("button", name="Resume").click()

    person.wait_for_answer(2)
    assert person.shown() == "1 2 3 4 5"


def test_an_answer_without_text_yet_says_what_it_waits_for(person: Person) -> None:
    person.start_chat("[[delay 3000]] [[words 1]]")

    expect(person.answers.last.get_by_text("Waiting for model…")).to_be_visible()

    person.wait_for_answer()
    expect(person.answers.last.get_by_text("Waiting for model…")).to_be_hidden()


def test_a_button_of_a_waiting_prompt_stays_while_other_things_happen(person: Person) -> None:
    person.start_chat(COUNT_SLOWLY)
    person.wait_for_text(10)
    person.write("[[words 2]]")
    withdraw = person.tray.get_by_role("button", name="Withdraw")
    withdraw.focus()

    person.wait_for_text(100)
    person.page.evaluate("() => window.dispatchEvent(new Event('online'))")

    person.wait_for_text(200)
    expect(withdraw).to_be_focused()


def test_reasoning_is_one_calm_line_that_opens(person: Person) -> None:
    person.start_chat("[[reason I look at it from all sides.]] [[words 3]]")
    person.wait_for_answer()

    thoughts = person.page.locator("details.reasoning")
    expect(thoughts.locator("[data-slot=text]")).to_be_hidden()
    thoughts.locator("summary").press("Enter")
    expect(thoughts.locator("[data-slot=text]")).to_have_text("I look at it from all sides.")


def test_an_answer_that_fails_says_why_live_and_after_a_reload(person: Person) -> None:
    person.start_chat("[[error failed]] [[words 10]]")
    expect(person.pill).to_have_text("Failed")
    said = person.answers.last.locator("[data-slot=note]")
    expect(said).to_contain_text("The demo was asked to fail in its answer.")
    expect(said).to_contain_text("It may have been billed.")
    words = said.text_content()

    person.page.reload()

    expect(said).to_have_text(words or "")
    expect(person.pill).to_have_text("Failed")


def test_an_unknown_outcome_is_said_and_a_new_message_is_answered(person: Person) -> None:
    person.start_chat("[[error partial]] [[words 10]]")
    expect(person.pill).to_have_text("Interrupted – outcome unknown")  # noqa: RUF001
    card = person.answers.last.locator("[data-slot=card]")
    expect(card).to_contain_text("Whether the model answered is not known")
    expect(card.get_by_role("button")).to_have_text(["Retry", "Abandon"])

    person.write("[[words 3]]")

    person.wait_for_answer(2)
    expect(person.answers.last).to_contain_text("1 2 3")
    # The conversation has gone on: what is unknown can only be left so.
    expect(person.answers.first.get_by_role("button")).to_have_text(["Abandon"])


def test_screen_readers_hear_of_the_beginning_and_the_end_only(person: Person) -> None:
    person.start_chat("[[delay 15]] [[words 60]]")
    person.wait_for_answer()
    expect(person.page.get_by_role("status")).to_have_text("Answer complete, 60 words")

    assert person.page.evaluate("() => window.holdfastTest.announced") == [
        "Generating answer",
        "Answer complete, 60 words",
    ]
    expect(person.page.get_by_role("log")).to_have_attribute("aria-live", "off")


def test_back_leads_from_a_new_chat_to_the_page_before(person: Person) -> None:
    person.page.goto(person.base_url)
    person.start_chat("[[words 2]]")
    person.wait_for_answer()

    person.page.go_back()

    expect(person.page.get_by_text("What is on your mind")).to_be_visible()
    expect(person.answers).to_have_count(0)


def test_enter_sends_and_shift_enter_starts_a_line(person: Person) -> None:
    person.page.goto(person.base_url)
    person.composer.press_sequentially("one")
    person.composer.press("Shift+Enter")
    person.composer.press_sequentially("two")
    person.composer.press("Enter")

    expect(person.questions).to_have_text(re.compile("one\ntwo"))


def test_hostile_text_stays_text_while_it_streams_and_after_a_reload(person: Person) -> None:
    attacks = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script><svg onload=window.pwned=1>"

    person.start_chat(attacks)
    person.wait_for_answer()
    for _ in range(2):
        assert attacks in person.shown()
        expect(person.page.locator("[data-slot=session-title]")).to_contain_text("<img src=x")
        assert person.page.evaluate("() => window.pwned") is None
        assert person.page.locator("[data-slot=transcript] img, [data-slot=transcript] script").count() == 0
        person.page.reload()


def test_a_chat_deleted_elsewhere_says_so_and_is_not_asked_for_again(person: Person) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    person.page.evaluate(
        """(session) => fetch(`/api/v1/sessions/${session}`, {
            method: "DELETE",
            headers: { "X-CSRFToken": document.querySelector("[name=csrfmiddlewaretoken]").value },
        })""",
        session,
    )

    expect(person.strip).to_contain_text("does not exist any more")


def test_without_scripts_one_can_read_and_send(person: Person, instance: Instance, chromium: Browser) -> None:
    plain = people.sign_in(instance, chromium, java_script_enabled=False)
    plain.composer.fill("[[words 7]]")
    plain.page.get_by_role("button", name="Send", exact=True).click()
    plain.page.wait_for_url(re.compile("/s/ses_"))

    person.open(plain.session)
    person.wait_for_answer()
    plain.page.reload()

    expect(plain.answers).to_contain_text("1 2 3 4 5 6 7")
    assert plain.page.get_by_role("button", name="Withdraw").count() == 0
    plain.page.context.close()


def test_the_list_of_chats_opens_over_the_page_on_a_phone(
    administrator: Person, instance: Instance, chromium: Browser
) -> None:
    phone = people.sign_in(instance, chromium, viewport={"width": 390, "height": 800})
    chats = phone.page.get_by_role("navigation", name="Chats")
    expect(chats).to_be_hidden()

    phone.composer.fill("half a thought")
    phone.page.evaluate("() => { window.notReloaded = true; }")
    phone.page.get_by_role("link", name="Show the list of chats").click()
    expect(chats).to_be_visible()
    assert phone.page.evaluate("() => window.notReloaded")
    phone.page.locator(".scrim").click()

    expect(chats).to_be_hidden()
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    phone.page.context.close()
