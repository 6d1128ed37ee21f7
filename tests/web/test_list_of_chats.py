"""The list of chats beside a chat: pinned ones on top, narrowed down as asked, marked by what they do."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app.models import Session
from sessions_app.web import sidebar
from tests.web import conversations
from tests.web.conftest import Page, parsed
from tests.web.conversations import Conversation


def _chats(page: Page) -> list[str]:
    return [value for name, value in page.attributes if name == "data-chat" and value]


def _mark(page: Page, session_id: str) -> str:
    for around, _ in page.texts:
        if any(each.get("data-chat") == session_id for each in around):
            for each in around:
                if "data-mark" in each:
                    return each["data-mark"]
    return ""


@pytest.mark.rows_of_its_own
@pytest.mark.both_databases
def test_a_pinned_chat_is_on_top_whatever_its_age_and_only_once(browser: Client, ann: User) -> None:
    now = timezone.now()
    old = conversations.begin(ann.pk, now=now - timedelta(days=900))
    Session.objects.filter(pk=old.session_id).update(pinned=True)
    for minutes in range(sidebar.PAGE + 5):
        conversations.begin(ann.pk, now=now - timedelta(minutes=minutes))

    first = parsed(browser.get("/"))
    older = next(value for name, value in first.attributes if value.startswith("?chats="))
    second = parsed(browser.get("/" + older))

    assert _chats(first)[0] == old.session_id
    assert len(_chats(first)) == sidebar.PAGE + 1
    assert sorted(_chats(first) + _chats(second)) == sorted(Session.objects.values_list("pk", flat=True))


@pytest.mark.rows_of_its_own
def test_an_archived_pinned_chat_is_in_the_archive_only(browser: Client, ann: User) -> None:
    hidden = conversations.begin(ann.pk)
    Session.objects.filter(pk=hidden.session_id).update(pinned=True, archived=True)

    assert _chats(parsed(browser.get("/"))) == []
    assert _chats(parsed(browser.get("/", {"q": "archived:"}))) == [hidden.session_id]


def test_a_search_stays_while_a_chat_is_open(browser: Client, ann: User) -> None:
    plan = conversations.begin(ann.pk, title="dinner plan")
    conversations.begin(ann.pk, title="something else")

    page = parsed(browser.get(f"/s/{plan.session_id}", {"q": "plan"}))

    assert _chats(page) == [plan.session_id]
    assert ("value", "plan") in page.attributes
    assert ("href", f"/s/{plan.session_id}?q=plan") in page.attributes
    changed = browser.post(f"/s/{plan.session_id}/change?q=plan", {"pinned": "true"})
    assert changed["Location"] == f"/s/{plan.session_id}?q=plan"


def test_the_list_comes_by_itself_as_on_the_page(browser: Client, ann: User) -> None:
    plan = conversations.begin(ann.pk, title="dinner plan")
    conversations.begin(ann.pk, title="something else")

    alone = parsed(browser.get("/chats", {"q": "plan", "current": plan.session_id}))

    assert _chats(alone) == [plan.session_id]
    assert ("aria-current", "page") in alone.attributes
    assert "html" not in alone.tags
    assert Client().get("/chats")["Location"].startswith("/sign-in")


def test_a_chat_whose_last_answer_failed_is_marked_until_it_goes_on(
    browser: Client, conversation: Conversation
) -> None:
    message = conversation.begin_answer()
    conversation.fail(message, outcome="failed", reason="provider_error")
    assert _mark(parsed(browser.get("/")), conversation.session_id) == "failed"

    conversation.exchange("one", "two")

    assert _mark(parsed(browser.get("/")), conversation.session_id) == ""


def test_what_waits_is_marked_before_what_failed(browser: Client, conversation: Conversation) -> None:
    message = conversation.begin_answer()
    call = conversation.begin_call(message, "send_mail")
    conversation.ask(message, call, {})

    assert _mark(parsed(browser.get("/")), conversation.session_id) == "decision"


@pytest.mark.rows_of_its_own
@pytest.mark.rows_of_its_own
def test_a_search_finds_nothing_of_another_user(browser: Client, bob: User) -> None:
    theirs = conversations.begin(bob.pk, title="secret plans")
    Session.objects.filter(pk=theirs.session_id).update(pinned=True)

    for query in ("", "secret", "archived:", "needs:decision"):
        for path in ("/", "/chats"):
            assert b"secret plans" not in browser.get(path, {"q": query}).content
