"""Tool calls, retries and cards, as the server renders them."""

import json

from django.test import Client
from django.utils import timezone

from recovery import decisions
from sessions_app import sessions
from sessions_app.web import calls
from tests.support import world
from tests.web.conftest import Page, parsed
from tests.web.conversations import Conversation


def look(browser: Client, conversation: Conversation) -> Page:
    return parsed(browser.get(f"/s/{conversation.session_id}"))


def test_neighbouring_calls_fold_and_a_failing_one_stands_by_itself(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    for index in (0, 1):
        conversation.call(message, "current_time", given={}, output="now", index=index)
    bad = conversation.begin_call(message, "calculator", index=2)
    conversation.enter(message, bad, {"expression": "1/0"})
    conversation.fail_call(message, bad, "Division by zero.")
    conversation.call(message, "notebook", given={}, output="noted", index=3)
    conversation.end_answer(message)

    page = look(browser, conversation)

    assert page.text(data_slot="tools-label") == "Used 2 tools"
    assert _labels(page, inside="tools-body") == ["Used current_time", "Used current_time"]
    assert _labels(page) == [*["Used current_time"] * 2, "calculator failed", "Used notebook"]
    assert page.text(inside=bad, data_slot="text") == "Division by zero."
    assert page.text(inside=bad, data_slot="result-name") == "Error"


def test_the_input_is_formatted_and_the_output_is_exact(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    part = conversation.call(
        message, "notebook", given={"text": "Grüße <b>", "tags": [1]}, output="one\r\ntwo"
    )

    page = look(browser, conversation)

    assert page.text(inside=part, data_slot="input") == (
        '{\n  "text": "Grüße <b>",\n  "tags": [\n    1\n  ]\n}'
    )
    assert page.text(inside=part, data_slot="text") == "one\r\ntwo"
    facts = json.loads(page.text(id="live"))["calls"][part]
    assert (facts["name"], facts["state"], facts["unknown"]) == ("notebook", "completed", False)


def test_arguments_that_are_no_json_are_shown_as_they_came(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    part = conversation.begin_call(message, "calculator", raw='{"expression": ')
    conversation.fail_call(message, part, "Malformed.")

    assert look(browser, conversation).text(inside=part, data_slot="input") == '{"expression": '


def test_a_running_call_shows_its_progress(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    part = conversation.begin_call(message, "fetch_page")
    conversation.enter(message, part, {})
    conversation.progress(message, part, "3 of 7 pages")

    page = look(browser, conversation)

    assert _labels(page) == ["Running fetch_page…"]
    assert page.text(data_slot="progress") == "3 of 7 pages"


def test_a_long_output_is_cut_and_says_so(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    part = conversation.call(message, "fetch_page", given={}, output="ü" * 30_000)

    page = look(browser, conversation)

    assert page.text(inside=part, data_slot="text") == "ü" * calls.SHOWN_CHARACTERS
    assert _is_shown(page, "cut")


def test_a_call_that_waits_asks_with_its_arguments_open(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    part = conversation.begin_call(message, "send_mail")
    conversation.ask(message, part, {"to": "all"})

    page = look(browser, conversation)

    assert page.text(data_slot="card-title") == "Allow send_mail?"
    assert _choices(page) == ["Allow once", "Deny"]
    assert "no time limit" in page.text(data_slot="card-risk")
    assert ("data-asks", "true") in page.attributes
    assert page.text(data_slot="banner-words") == "1 item needs your decision"
    assert ("href", f"#{part}") in page.attributes
    assert ("data-pill", "waiting") in page.attributes


def test_a_call_that_would_repeat_an_unknown_one_shows_the_earlier(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    earlier = conversation.begin_call(message, "send_mail")
    conversation.enter(message, earlier, {})
    conversation.fail_call(message, earlier, "Tool execution interrupted", unknown=True)
    again = conversation.begin_call(message, "send_mail", index=1)
    conversation.ask(message, again, {}, because="duplicate", earlier=earlier)

    page = look(browser, conversation)

    assert "has it twice" in page.text(inside=again, data_slot="card-what")
    assert page.text(data_slot="banner-words") == "2 items need your decision"
    assert [value for name, value in page.attributes if (name, value) == ("href", f"#{earlier}")]


def test_an_answered_call_says_who_answered_and_why(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    part = conversation.begin_call(message, "send_mail")
    conversation.ask(message, part, {})
    conversation.answer(message, part, "deny", reason="not today <b>")
    conversation.fail_call(message, part, "Denied.")

    page = look(browser, conversation)

    assert _labels(page) == ["send_mail was not allowed"]
    assert page.text(data_slot="card-title") == "Denied by ann"
    assert page.text(data_slot="card-reason") == "· not today <b>"
    assert ("data-decided", "true") in page.attributes
    assert page.text(data_slot="banner-words") == ""


def test_an_unknown_call_says_what_is_known_and_what_it_risks(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    part = conversation.begin_call(message, "send_mail")
    conversation.enter(message, part, {"to": "all"})
    conversation.fail_call(message, part, "Tool execution interrupted", unknown=True)

    page = look(browser, conversation)

    assert _labels(page) == ["send_mail: outcome unknown"]
    assert _steps(page) == ["Requested", "Started", "Result not recorded"]
    assert "may already have changed something" in page.text(data_slot="card-risk")
    assert _choices(page) == ["Mark as done…", "Mark as not done"]


def test_an_unknown_attempt_says_how_far_it_came(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    part = conversation.begin_text(message)
    conversation.end_text(message, part, "so far 🌊")
    attempt = conversation.lose_attempt(message, answered=True)
    conversation.fail(message, outcome="unknown", reason="crash")

    page = look(browser, conversation)

    assert (
        page.text(inside=attempt, data_slot="card-what")
        == "The server stopped while the model was being called."
    )
    assert _steps(page) == ["Prepared", "Sent", "Received 8 of ? characters"]
    assert page.text(data_slot="card-risk") == "Trying again may be billed twice."
    assert _choices(page) == ["Retry", "Abandon"]
    assert page.text(data_slot="note", data_state="unknown") == ""


def test_an_unknown_attempt_that_a_newer_turn_left_behind_can_only_be_abandoned(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    conversation.lose_attempt(message)
    conversation.fail(message, outcome="unknown", reason="crash")
    conversation.prompt("and now?")
    conversation.promote()

    assert _choices(look(browser, conversation)) == ["Abandon"]


def test_what_is_unknown_in_a_message_that_was_hidden_can_still_be_decided(
    browser: Client, conversation: Conversation
) -> None:
    question = conversation.prompt("mail him")
    conversation.promote()
    message = conversation.begin_answer()
    call = conversation.begin_call(message, "send_mail")
    conversation.enter(message, call, {})
    conversation.fail_call(message, call, "Tool execution interrupted", unknown=True)
    attempt = conversation.lose_attempt(message)
    conversation.fail(message, outcome="unknown", reason="crash")
    session_id, now = conversation.session_id, timezone.now()
    world.change(session_id, owner_id=None, owed_at=None)
    sessions.edit_and_resend(session_id=session_id, message_id=question, text="call him", now=now)
    conversation.promote()
    conversation.end_answer(conversation.begin_answer())
    world.change(session_id, owner_id=None, owed_at=None)

    page = look(browser, conversation)

    assert page.text(data_slot="banner-words") == "2 items need your decision"
    assert _labels(page) == []
    assert page.text(inside=call, data_slot="card-title") == "Whether send_mail had its effect is not known"
    assert _choices(page) == ["Mark as done…", "Mark as not done", "Abandon"]
    assert ("href", f"#{call}") in page.attributes

    decisions.decide_call(session_id=session_id, call_id=call, action="mark_not_done", by="ann", now=now)
    decisions.decide_attempt(session_id=session_id, attempt_id=attempt, action="abandon", by="ann", now=now)

    page = look(browser, conversation)
    assert page.text(data_slot="banner-words") == ""
    assert page.text(data_slot="elsewhere") == ""


def test_a_decided_attempt_is_one_line_and_policy_is_not_a_person(
    browser: Client, conversation: Conversation
) -> None:
    for policy in (False, True):
        message = conversation.begin_answer()
        attempt = conversation.lose_attempt(message)
        conversation.fail(message, outcome="unknown", reason="crash")
        conversation.decide(message, attempt, "abandon", policy=policy, reason="continue")

    page = look(browser, conversation)

    titles = page.text(data_slot="card-title")
    assert titles == "Abandoned by annLeft unknown, and the answer went on"
    assert page.text(data_slot="card-reason").count("continue") == 2
    assert page.text(data_slot="banner-words") == ""


def test_an_attempt_that_is_tried_again_says_when(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    conversation.schedule_retry(message, attempt=2, at="2026-11-29T12:00:00Z", reason="Please wait.")

    page = look(browser, conversation)

    assert page.text(data_slot="retry-reason") == "Please wait."
    assert page.text(data_slot="retry-when") == "Attempt 2 follows by itself."
    assert ("data-retry-at", "2026-11-29T12:00:00Z") in page.attributes


def _labels(page: Page, *, inside: str = "") -> list[str]:
    """The line of each call, in order."""
    return [
        text
        for around, text in page.texts
        if _innermost(around).get("data-slot") == "label" and _is_in(around, inside)
    ]


def _is_in(around: list[dict[str, str]], slot: str) -> bool:
    return not slot or any(each.get("data-slot") == slot for each in around)


def _innermost(around: list[dict[str, str]]) -> dict[str, str]:
    return around[-1] if around else {}


def _choices(page: Page) -> list[str]:
    return [text for around, text in page.texts if _innermost(around).get("class") == "choice"]


def _steps(page: Page) -> list[str]:
    return [text for around, text in page.texts if "data-mark" in _innermost(around) and text.strip()]


def _is_shown(page: Page, slot: str) -> bool:
    innermost = (_innermost(around) for around, _ in page.texts)
    return any(each.get("data-slot") == slot and "hidden" not in each for each in innermost)
