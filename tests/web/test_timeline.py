"""The timeline of a chat: each fact once, in the order in which it was stored."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sessions_app import sessions
from sessions_app.models import Session, SessionEvent
from sessions_app.web import spending, timeline
from tests.web import conversations
from tests.web.conftest import parsed
from tests.web.conversations import Conversation

HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>"


def _timeline(browser: Client, conversation: Conversation, query: str = "") -> list[str]:
    """The words of each fact, in order."""
    page = parsed(browser.get(f"/s/{conversation.session_id}/timeline{query}"))
    summaries = [
        text.strip()
        for around, text in page.texts
        if any("data-mark" in element for element in around)
        and not any({"datetime", "tabindex"} & element.keys() for element in around)
        and not any(element.get("class") == "fact-seq" for element in around)
    ]
    return [text for text in summaries if text]


def test_attempts_tools_and_decisions_are_told_in_order(browser: Client, conversation: Conversation) -> None:
    conversation.prompt("one")
    conversation.promote()
    message = conversation.begin_answer()
    call = conversation.begin_call(message, "send_mail")
    conversation.ask(message, call, {"to": "all"})
    conversation.answer(message, call, "approve", reason="they wait for it")
    conversation.enter(message, call, {"to": "all"})
    conversation.fail_call(message, call, "Tool execution interrupted", unknown=True)
    conversation.mark(message, call)
    attempt = conversation.lose_attempt(message, answered=True)
    conversation.decide(message, attempt, "abandon", reason="enough")

    assert _timeline(browser, conversation) == [
        "Step 1: demo:scripted is to be asked",
        "send_mail is called for",
        "send_mail waits for a person",
        "send_mail: Allowed once by ann · they wait for it",
        "send_mail entered",
        "send_mail failed: Tool execution interrupted",
        "send_mail: Marked as done by ann",
        "Attempt 1 prepared for step",
        "About to be sent",
        "The provider answers with status 200",
        "Outcome unknown: lost · may have been billed",
        "Abandoned by ann · enough",
    ]


@pytest.mark.rows_of_its_own
def test_every_kind_of_fact_can_be_told(browser: Client, conversation: Conversation) -> None:
    """Data of any event, also of an older version with fields missing, makes words."""
    session = sessions.get(user_id=_owner(conversation), session_id=conversation.session_id)
    for seq, kind in enumerate(timeline.FACTS, start=session.head_seq + 1):
        data = {"outcome": "failed", "unknown": True, "message": "msg_gone", "action": "retry", "by": "ann"}
        SessionEvent.objects.create(
            session=session, seq=seq, type=kind, version=1, data=data, time=session.created_at
        )

    assert len(_timeline(browser, conversation)) == len(timeline.FACTS)


def test_a_long_timeline_is_paged_without_gap_or_repeat(
    browser: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "PAGE", 4)
    for number in range(5):
        conversation.exchange(f"question {number}", "answer")
    whole = _timeline_of_everything(browser, conversation)

    assert len(whole) == 10
    assert whole.count("Step complete") == 5


def test_the_number_of_statements_does_not_grow(browser: Client, conversation: Conversation) -> None:
    conversation.exchange("one", "two")
    few = _statements(browser, conversation)
    for _ in range(20):
        conversation.exchange("one", "two")

    assert _statements(browser, conversation) == few <= 7


def test_hostile_data_stays_text(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    harmless = set(parsed(browser.get(f"/s/{conversation.session_id}/timeline")).tags)
    conversation.call(message, HOSTILE, given={HOSTILE: HOSTILE}, output=HOSTILE)
    conversation.fail(message, outcome="failed", reason="provider_error", detail=HOSTILE)

    page = parsed(browser.get(f"/s/{conversation.session_id}/timeline"))

    assert set(page.tags) == harmless
    assert HOSTILE in page.text(data_mark="failed")


def test_another_users_timeline_is_not_there(browser: Client, bob: User) -> None:
    theirs = conversations.begin(bob.pk)

    assert browser.get(f"/s/{theirs.session_id}/timeline").status_code == 404
    assert Client().get(f"/s/{theirs.session_id}/timeline")["Location"].startswith("/sign-in")


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "²"])
def test_nonsense_shows_the_newest(browser: Client, conversation: Conversation, before: str) -> None:
    assert browser.get(f"/s/{conversation.session_id}/timeline", {"before": before}).status_code == 200


def test_an_empty_chat_says_that_nothing_was_asked(browser: Client, conversation: Conversation) -> None:
    assert (
        "Nothing was asked here yet" in parsed(browser.get(f"/s/{conversation.session_id}/timeline")).text()
    )


def _timeline_of_everything(browser: Client, conversation: Conversation) -> list[str]:
    whole: list[str] = []
    query = ""
    for _ in range(5):
        whole = _timeline(browser, conversation, query) + whole
        page = parsed(browser.get(f"/s/{conversation.session_id}/timeline{query}"))
        query = next((value for name, value in page.attributes if value.startswith("?before=")), "")
        if not query:
            break
    return whole


def _owner(conversation: Conversation) -> int:
    from sessions_app.models import Session

    return Session.objects.get(pk=conversation.session_id).user_id


def _statements(browser: Client, conversation: Conversation) -> int:
    with CaptureQueriesContext(connection) as statements:
        browser.get(f"/s/{conversation.session_id}/timeline")
    return len(statements)


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (
            {"usage": {"input_tokens": 1200, "output_tokens": 34, "cost": 0.0028}},
            "1,200 tokens in, 34 tokens out · $0.0028",
        ),
        ({"usage": {"output_tokens": 5}}, "5 tokens out"),
        ({"outcome": "completed", "may_be_billed": True}, "its usage was not told"),
        ({"outcome": "interrupted", "may_be_billed": True}, "may have been billed"),
        ({"outcome": "failed", "may_be_billed": False}, ""),
        ({}, "may have been billed"),
    ],
)
def test_what_an_attempt_used_is_told(ending: dict[str, Any], words: str) -> None:
    assert spending.of_attempt(ending) == words


@pytest.mark.parametrize(
    ("cost", "words"),
    [(0, "$0.00"), (0.0028, "$0.0028"), (0.00000125, "$0.00000125"), (0.5, "$0.5000"), (1234.5, "$1,234.50")],
)
def test_a_cost_is_told_to_the_digits_that_say_something(cost: float, words: str) -> None:
    assert spending.dollars(cost) == words


def test_the_timeline_tells_what_the_chat_used_and_what_is_not_known(
    browser: Client, conversation: Conversation
) -> None:
    session = Session(input_tokens=1000, output_tokens=20, cost=Decimal("0.25"), uncounted_attempts=2)
    page = browser.get(f"/s/{conversation.session_id}/timeline").content.decode()

    assert "Used so far: 0 tokens in, 0 tokens out." in page
    assert spending.of_session(session) == (
        "1,000 tokens in, 20 tokens out · $0.2500; "
        "2 more attempts may have been billed, and their usage is not known"
    )
