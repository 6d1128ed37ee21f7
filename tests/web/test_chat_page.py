"""The transcript and the list of chats, as the server renders them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from schema.attempts import ErrorClass, Reason
from sessions_app import identity, sessions
from sessions_app.models import Session, SessionMessage
from sessions_app.web import sidebar, snapshot
from tests.web import conversations
from tests.web.conftest import parsed
from tests.web.conversations import Conversation


def test_the_page_holds_the_whole_conversation_without_scripts(
    browser: Client, conversation: Conversation
) -> None:
    conversation.exchange("What is a log?", "A log is a list of facts.")

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert page.text(data_type="user").split() == ["You", "said", "What", "is", "a", "log?"]
    assert page.text(kind="text", data_slot="text") == "A log is a list of facts."


def test_an_open_answer_shows_the_text_so_far_and_how_long_it_is(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    conversation.begin_text(message, "One 🌊 two\r\n three")

    response = browser.get(f"/s/{conversation.session_id}")

    assert parsed(response).text(kind="text", data_slot="text") == "One 🌊 two\r\n three"
    assert ("data-length", "17") in parsed(response).attributes
    assert b"two&#13;" in response.content


def test_the_page_names_the_seq_from_which_a_reader_goes_on(
    browser: Client, conversation: Conversation
) -> None:
    conversation.exchange("one", "two")
    head = Session.objects.get().head_seq

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert ("data-head-seq", str(head)) in page.attributes


def test_a_pending_prompt_is_on_the_page_once(browser: Client, conversation: Conversation) -> None:
    conversation.exchange("one", "two")
    conversation.prompt("three, queued", delivery="queue")

    response = browser.get(f"/s/{conversation.session_id}")

    live = json.loads(parsed(response).text(id="live"))
    assert [prompt["text"] for prompt in live["pending"]] == ["three, queued"]
    assert parsed(response).text(data_slot="ahead").split() == ["You", "said", "three,", "queued"]


def test_a_prompt_that_is_promoted_while_the_page_is_read_is_on_it_once(
    browser: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = conversation.prompt("now or later")
    read = sessions.messages_of

    def promoted_just_before(session: Session) -> Any:
        conversation.promote()
        return read(session)

    monkeypatch.setattr(sessions, "messages_of", promoted_just_before)
    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert [value for name, value in page.attributes if (name, value) == ("data-message", prompt)] == [prompt]
    assert json.loads(page.text(id="live"))["pending"] == []


def test_a_prompt_that_is_promoted_after_the_inbox_was_read_is_not_lost(
    browser: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = conversation.prompt("now or later")
    read = sessions.prompts_of

    def promoted_just_after(session: Session) -> Any:
        found = list(read(session))
        conversation.promote()
        return found

    monkeypatch.setattr(sessions, "prompts_of", promoted_just_after)
    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert ("data-message", prompt) in page.attributes
    assert page.text(data_slot="transcript").split()[-3:] == ["now", "or", "later"]


def test_reasoning_is_folded_and_readable(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    conversation.reason(message, "First I think.")

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert page.text(kind="reasoning", data_slot="text").split() == ["First", "I", "think."]
    assert "details" in page.tags


@pytest.mark.parametrize(
    ("outcome", "reason", "detail", "error_class", "words"),
    [
        ("interrupted", "interrupted", "stopped", None, "Stopped by you."),
        ("interrupted", "shutdown", "bye", None, "The server was restarted while the model was answering."),
        ("failed", "auth", "No such key.", "rejected", "The provider did not accept the key. No such key."),
        (
            "failed", "provider_error", "Boom.", "failed",
            "The answer failed. Boom. It may have been billed.",
        ),
        (
            "unknown", "timeout", "", "partial",
            "The model fell silent. Whether it finished the answer is not known. It may have been billed.",
        ),
    ],
)  # fmt: skip
def test_an_answer_that_did_not_complete_says_why(
    browser: Client,
    conversation: Conversation,
    outcome: Literal["failed", "interrupted", "unknown"],
    reason: Reason,
    detail: str,
    error_class: ErrorClass | None,
    words: str,
) -> None:
    message = conversation.begin_answer()
    conversation.fail(
        message,
        outcome=outcome,
        reason=reason,
        detail=detail,
        error_class=error_class,
    )

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert page.text(data_slot="note", data_state=outcome) == words


def test_an_empty_answer_says_that_the_model_returned_nothing(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    conversation.end_answer(message)

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert "The model returned nothing." in page.text(data_message=message)


@pytest.mark.rows_of_its_own
def test_a_long_conversation_opens_at_its_end_and_pages_backwards_without_gap_or_repeat(
    browser: Client, conversation: Conversation
) -> None:
    total = 2 * snapshot.MESSAGES + 30
    _fill(conversation, total)

    seen: list[str] = []
    address = f"/s/{conversation.session_id}"
    query = ""
    for _ in range(3):
        response = browser.get(address + query)
        shown = [name.split()[-1] for name in _user_texts(response)]
        seen = shown + seen
        query = next(
            (value for name, value in parsed(response).attributes if value.startswith("?before=")), ""
        )

    assert query == ""
    assert seen == [str(number) for number in range(total)]


def test_an_older_window_is_no_place_to_write(browser: Client, conversation: Conversation) -> None:
    conversation.exchange("one", "two")

    page = parsed(browser.get(f"/s/{conversation.session_id}?before=2"))

    assert "textarea" not in page.tags
    assert ("data-newest", "false") in page.attributes


@pytest.mark.parametrize(
    "nonsense", ["before=x", "before=-1", "before=9999999999999999999999", "chats=~", "chats=2026-99-99T~s"]
)
def test_a_nonsense_cursor_shows_the_page_all_the_same(
    browser: Client, conversation: Conversation, nonsense: str
) -> None:
    assert browser.get(f"/s/{conversation.session_id}?{nonsense}").status_code == 200


@pytest.mark.rows_of_its_own
def test_the_number_of_statements_is_the_same_for_20_and_2000_sessions(
    browser: Client, ann: User, conversation: Conversation
) -> None:
    conversation.exchange("one", "two")
    conversation.prompt("three")
    _many_sessions(ann, 20)
    few = _statements(browser, f"/s/{conversation.session_id}")
    _many_sessions(ann, 1980)
    _fill(conversation, 300)

    assert _statements(browser, f"/s/{conversation.session_id}") == few <= 12
    assert _statements(browser, "/") <= 8


@pytest.mark.rows_of_its_own
def test_a_page_of_a_long_conversation_with_many_calls_stays_light(
    browser: Client, ann: User, conversation: Conversation
) -> None:
    _many_sessions(ann, 120)
    Session.objects.filter(pk__in=Session.objects.values("pk")[:60]).update(pinned=True)
    for number in range(20):
        conversation.prompt(f"question {number} " + "w " * 30)
        conversation.promote()
        message = conversation.begin_answer()
        for index in range(3):
            conversation.call(
                message, "calculator", given={"expression": "1"}, output="x" * 9000, index=index
            )
        part = conversation.begin_text(message, index=3)
        conversation.end_text(message, part, "word\n" * 400)
        conversation.end_answer(message)

    page = browser.get(f"/s/{conversation.session_id}")

    assert len(page.content) <= 150_000
    assert "question 19" in parsed(page).text(data_type="user")
    assert "?before=" in page.content.decode()


def test_the_newest_message_is_shown_whatever_its_length(browser: Client, conversation: Conversation) -> None:
    conversation.exchange("one", "x" * 200_000)

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert len(page.text(kind="text", data_slot="text")) == 200_000


@pytest.mark.rows_of_its_own
def test_the_list_of_chats_shows_fifty_newest_first_and_leads_to_the_older_ones(
    browser: Client, ann: User
) -> None:
    _many_sessions(ann, 120)

    seen: list[str] = []
    query = ""
    for _ in range(3):
        page = parsed(browser.get("/" + query))
        seen += [value for name, value in page.attributes if name == "data-chat" and value]
        query = next((value for name, value in page.attributes if value.startswith("?chats=")), "")

    newest_first = Session.objects.order_by("-active_at", "-pk").values_list("pk", flat=True)
    assert seen == list(newest_first)
    assert query == ""


def test_chats_of_the_same_moment_are_listed_once_each(browser: Client, ann: User) -> None:
    now = timezone.now()
    for _ in range(2 * sidebar.PAGE):
        conversations.begin(ann.pk, now=now)

    first = parsed(browser.get("/"))
    older = next(value for name, value in first.attributes if value.startswith("?chats="))
    second = parsed(browser.get("/" + older))

    seen = [value for page in (first, second) for name, value in page.attributes if name == "data-chat"]
    assert sorted(seen) == sorted(Session.objects.values_list("pk", flat=True))


def test_chats_are_grouped_by_day(ann: User) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for age in [0, 1, 3, 7, 40, 400]:
        conversations.begin(ann.pk, now=now - timedelta(days=age))

    beside = snapshot.beside(user_id=ann.pk, cursor="", now=now)

    assert {group.name: len(group.rows) for group in beside.groups} == {
        "Today": 1,
        "Yesterday": 1,
        "Previous 7 days": 2,
        "October": 1,
        "October 2025": 1,
    }


def _user_texts(response: object) -> list[str]:
    """The texts of the user's messages, each ending in its word."""
    pieces = [
        text
        for around, text in parsed(response).texts
        if any("bubble" in attributes.get("class", "").split() for attributes in around)
    ]
    return [piece for piece in pieces if piece.strip()]


def _fill(conversation: Conversation, count: int) -> None:
    """Many messages at once, beside the log: the page reads rows."""
    session = Session.objects.get(pk=conversation.session_id)
    now = timezone.now()
    SessionMessage.objects.bulk_create(
        SessionMessage(
            id=identity.new_message_id(), session=session, seq=session.head_seq + 1 + number, type="user",
            state="completed", created_at=now, completed_at=now, origin="user", text=f"message {number}",
        )
        for number in range(count)
    )  # fmt: skip


def _many_sessions(user: User, count: int) -> None:
    now = timezone.now()
    Session.objects.bulk_create(
        Session(
            id=identity.new_session_id(), user=user, agent="default", model="demo:scripted", title=f"chat {number}",
            created_at=now, active_at=now - timedelta(minutes=number),
        )
        for number in range(count)
    )  # fmt: skip


def _statements(browser: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as statements:
        assert browser.get(path).status_code == 200
    return len(statements)
