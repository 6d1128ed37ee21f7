"""Reloads, lost networks and killed processes: the reader sees the text so far, then each fragment once."""

import json
import random
import re

import pytest
from playwright.sync_api import Route, WebSocketRoute, expect

from tests.browser.people import Person
from tests.support.processes import Instance
from tests.support.requirements import requires
from tests.support.waiting import until

pytestmark = requires("chromium")

WORDS = 200
SCRIPT = f"[[delay 40]] [[words {WORDS}]]"
WHOLE = " ".join(map(str, range(1, WORDS + 1)))


def assert_grew_only(seen: list[str]) -> None:
    """Each text is a prefix of the whole, and none is shorter than the one before."""
    before = ""
    for text in seen:
        assert WHOLE.startswith(text)
        assert len(text) >= len(before), f"jumped back from {before[-30:]!r} to {text[-30:]!r}"
        before = text


@pytest.mark.parametrize("seed", range(2))
def test_reloading_at_ten_random_moments_shows_the_text_so_far_and_then_the_rest(
    person: Person, seed: int
) -> None:
    chance = random.Random(seed)
    session = person.start_chat(SCRIPT)
    person.wait_for_text(1)
    reloads = 0
    # On a busy machine the answer may be complete before so many.
    while reloads < 10 and len(person.shown()) < len(WHOLE):
        person.page.wait_for_timeout(chance.uniform(0, 600))
        assert_grew_only(person.seen())
        at_reload = person.shown()
        person.page.reload(wait_until="commit")
        caught_up = person.wait_for_text(len(at_reload))
        assert caught_up.startswith(at_reload)
        reloads += 1

    person.wait_for_answer()

    assert_grew_only(person.seen())
    assert person.shown() == WHOLE == person.stored_answer(session)
    assert reloads >= 2


def test_a_network_that_goes_and_comes_back_leaves_no_gap_and_no_repeat(person: Person) -> None:
    session = person.start_chat(SCRIPT)
    person.wait_for_text(50)

    person.page.context.set_offline(True)
    expect(person.strip).to_contain_text("Connection lost. Your text is safe.")
    expect(person.pill).to_have_text("Not connected")
    cut_at = person.shown()
    person.page.context.set_offline(False)

    expect(person.strip).to_contain_text("Connected")
    expect(person.strip).to_be_hidden()
    person.wait_for_answer()
    assert_grew_only(person.seen())
    assert len(cut_at) < len(WHOLE)
    assert person.shown() == WHOLE == person.stored_answer(session)


def test_a_message_written_offline_is_kept_over_a_reload_and_sent_once(person: Person) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    person.wait_until_idle()
    person.page.context.set_offline(True)
    person.write("[[words 6]]")
    bubble = person.page.locator("[data-slot=ahead] .turn.user")
    expect(bubble).to_contain_text("Sending…")
    expect(bubble).to_contain_text("Not sent yet")
    expect(bubble.get_by_role("button")).to_have_text(["Send now", "Edit"])

    person.page.context.set_offline(False)
    person.page.reload()

    person.wait_for_answer(2)
    assert person.shown() == "1 2 3 4 5 6"
    prompts = person.api(f"/sessions/{session}/prompts?state=all")["results"]
    assert [prompt["text"] for prompt in prompts] == ["[[words 2]]", "[[words 6]]"]
    assert (
        person.page.evaluate("() => Object.keys(localStorage).filter((key) => key.includes(':prompt:'))")
        == []
    )


def test_an_unsent_message_can_be_taken_back_to_edit(person: Person) -> None:
    person.start_chat("[[words 2]]")
    person.wait_for_answer()
    person.wait_until_idle()
    person.page.context.set_offline(True)
    person.write("half a thought")

    person.page.get_by_role("button", name="Edit").click()

    expect(person.composer).to_have_value("half a thought")
    expect(person.page.locator("[data-slot=ahead] .turn.user")).to_have_count(0)


def test_a_lost_answer_to_creating_a_chat_makes_one_chat_not_two(person: Person) -> None:
    asked: list[str] = []

    def lose_the_first_answer(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "{}")["id"])
        if len(asked) == 1:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    before = len(person.api("/sessions?limit=200")["results"])
    person.page.route("**/api/v1/sessions", lose_the_first_answer)

    session = person.start_chat("[[words 3]]")
    person.wait_for_answer()

    assert asked == [session, session]
    assert len(person.api("/sessions?limit=200")["results"]) == before + 1
    assert len(person.api(f"/sessions/{session}/prompts?state=all")["results"]) == 1


def test_a_reload_before_the_chat_exists_goes_on_with_it(person: Person) -> None:
    person.page.goto(person.base_url)
    person.page.route("**/api/v1/sessions", lambda route: route.abort())
    person.write("[[words 4]]")
    expect(person.page.locator("[data-slot=ahead] .turn.user")).to_have_count(1)
    person.page.unroute("**/api/v1/sessions")

    person.page.reload()

    person.page.wait_for_url(re.compile("/s/ses_"))
    person.wait_for_answer()
    assert person.shown() == "1 2 3 4"


def test_retry_now_before_the_chat_exists_creates_it(person: Person) -> None:
    person.page.goto(person.base_url)
    person.page.route("**/api/v1/sessions", lambda route: route.abort())
    person.write("[[words 4]]")
    expect(person.strip).to_contain_text("Connection lost")
    person.page.unroute("**/api/v1/sessions")

    person.page.get_by_role("button", name="Retry now").click()

    person.page.wait_for_url(re.compile("/s/ses_"))
    person.wait_for_answer()
    expect(person.strip).to_be_hidden()


def test_a_stop_that_was_lost_with_the_connection_is_asked_for_again(person: Person) -> None:
    session = person.start_chat(SCRIPT)
    person.wait_for_text(30)
    person.page.evaluate(
        """() => {
            const { send } = WebSocket.prototype;
            WebSocket.prototype.send = () => { WebSocket.prototype.send = send; };
        }"""
    )
    person.stop()
    expect(person.pill).to_have_text("Stopping…")

    person.page.context.set_offline(True)
    person.page.context.set_offline(False)

    expect(person.pill).to_have_text("Stopped by you")
    assert WHOLE.startswith(person.shown())
    assert person.shown() == person.stored_answer(session) != WHOLE


def test_signing_out_elsewhere_is_told_and_loses_no_text(person: Person) -> None:
    person.start_chat("[[words 2]]")
    person.wait_for_answer()
    other = person.another_tab()
    other.page.goto(person.base_url)
    person.composer.fill("not sent yet")
    person.page.context.clear_cookies()

    person.page.context.set_offline(True)
    person.page.context.set_offline(False)

    expect(person.strip).to_contain_text("You are signed out. Your text is safe.")
    expect(person.composer).to_have_value("not sent yet")
    expect(person.page.get_by_role("link", name="Sign in")).to_be_visible()


def test_a_draft_outlives_a_reload(person: Person) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()
    person.composer.fill("not yet finis")

    person.page.reload()

    expect(person.composer).to_have_value("not yet finis")
    person.open(session)
    expect(person.composer).to_have_value("not yet finis")


def test_the_same_id_with_another_text_is_a_conflict_that_keeps_both_or_discards_mine(person: Person) -> None:
    session = person.start_chat("[[words 2]]")
    person.wait_for_answer()

    def with_a_used_id(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        socket.on_message(lambda text: server.send(re.sub('"id":"msg_[^"]+"', f'"id":"{used}"', str(text))))
        server.on_message(
            lambda text: socket.send(str(text).replace(used, sent()) if "refused" in text else text)
        )

    def sent() -> str:
        return person.page.locator("[data-slot=ahead] .turn.user").get_attribute("data-prompt") or ""

    used = person.api(f"/sessions/{session}/prompts?state=all")["results"][0]["id"]
    person.page.route_web_socket(re.compile("/ws/"), with_a_used_id)
    person.page.reload()
    person.write("[[words 5]]")

    bubble = person.page.locator("[data-slot=ahead] .turn.user")
    expect(bubble).to_contain_text("This message was already sent with different text")
    bubble.get_by_role("button", name="Discard mine").click()

    expect(bubble).to_have_count(0)
    assert len(person.api(f"/sessions/{session}/prompts?state=all")["results"]) == 1


def test_killing_the_web_process_mid_stream_costs_the_reader_nothing(
    person: Person, instance: Instance
) -> None:
    session = person.start_chat(SCRIPT)
    person.wait_for_text(50)

    killed = instance.kill("web")

    until(lambda: instance.pid("web") != killed, within=30, what="a new web process")
    person.wait_for_answer(within=90)
    assert_grew_only(person.seen())
    assert person.shown() == WHOLE == person.stored_answer(session)
