"""Who gets to see and do what, and what every page tells the browser."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app import sessions
from sessions_app.models import Session, SessionInput
from tests.support import world
from tests.web import conversations
from tests.web.conftest import parsed
from tests.web.conversations import Conversation


def test_without_an_account_the_start_page_says_where_the_link_is(db: None) -> None:
    answer = Client().get("/")

    assert answer.status_code == 200
    assert b"manage.py up" in answer.content
    assert Client().get("/sign-in")["Location"] == "/"


def test_signing_in_leads_to_where_one_wanted_to_go_and_out_again(ann: User) -> None:
    client = Client()
    asked = client.get("/s/ses_12345678")
    assert asked["Location"] == "/sign-in?next=/s/ses_12345678"

    form = {"username": "ann", "password": "a long enough one", "next": "/s/ses_12345678"}
    assert client.post("/sign-in", form)["Location"] == "/s/ses_12345678"

    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/")["Location"] == "/sign-in?next=/"


def test_signing_in_leads_to_no_other_site(ann: User) -> None:
    form = {"username": "ann", "password": "a long enough one", "next": "https://elsewhere.example/"}

    assert Client().post("/sign-in", form)["Location"] == "/"


def test_a_wrong_password_is_told_and_signs_nobody_in(ann: User) -> None:
    answer = Client().post("/sign-in", {"username": "ann", "password": "wrong"})

    assert b'role="alert"' in answer.content


def test_signing_out_is_not_a_link(browser: Client) -> None:
    assert browser.get("/sign-out").status_code == 405
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("method", ["get", "post"])
def test_another_users_chat_is_not_there_for_anybody_else(browser: Client, bob: User, method: str) -> None:
    theirs = conversations.begin(bob.pk, title="secret plans")
    theirs.exchange("the question", "the answer")
    path = f"/s/{theirs.session_id}" + ("/prompts" if method == "post" else "")

    answer = getattr(browser, method)(path, {"text": "let me in"} if method == "post" else None)
    unknown = getattr(browser, method)(path.replace(theirs.session_id, "ses_not-there"), {"text": "x"})

    assert answer.status_code == unknown.status_code == 404
    assert answer.content == unknown.content
    assert not SessionInput.objects.filter(text="let me in").exists()
    assert b"secret plans" not in browser.get("/").content


@pytest.mark.parametrize("page", ["change", "resend", "delete", "keep", "resume", "prompts"])
def test_another_users_pages_are_not_there_whatever_is_asked_of_them(
    browser: Client, bob: User, page: str
) -> None:
    theirs = conversations.begin(bob.pk, title="secret plans")
    theirs.exchange("the question", "the answer")
    before = world.everything_of(theirs.session_id)

    answers = [
        browser.post(f"/s/{session}/{page}", {"text": "x", "title": "mine", "pinned": "true"})
        for session in (theirs.session_id, "ses_not-there")
    ]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert world.everything_of(theirs.session_id) == before
    assert Client().post(f"/s/{theirs.session_id}/{page}")["Location"].startswith("/sign-in")


def test_a_stranger_is_sent_to_sign_in_from_every_page(conversation: Conversation) -> None:
    path = f"/s/{conversation.session_id}"
    for answer in (
        Client().get(path),
        Client().post(f"{path}/prompts", {"text": "x"}),
        Client().post("/", {"text": "x"}),
    ):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in?next=")
    assert not SessionInput.objects.exists()
    assert Session.objects.count() == 1


def test_a_deleted_chat_is_not_found(browser: Client, conversation: Conversation) -> None:
    from django.utils import timezone

    sessions.delete(session_id=conversation.session_id, now=timezone.now())

    assert browser.get(f"/s/{conversation.session_id}").status_code == 404
    assert browser.post(f"/s/{conversation.session_id}/prompts", {"text": "x"}).status_code == 404


def test_every_page_forbids_inline_scripts_and_copies(browser: Client, conversation: Conversation) -> None:
    answers = [
        browser.get("/"),
        browser.get(f"/s/{conversation.session_id}"),
        browser.get("/s/ses_not-there"),
        browser.get("/first-run/nonsense"),
        Client().get("/sign-in"),
        Client().get("/"),
    ]
    for answer in answers:
        assert answer["Content-Security-Policy"].startswith("default-src 'self';")
        assert "unsafe" not in answer["Content-Security-Policy"]
        assert "no-store" in answer["Cache-Control"]


def test_no_page_holds_an_inline_script_style_or_handler_or_names_another_origin(
    browser: Client, conversation: Conversation
) -> None:
    conversation.exchange("one", "two")
    for answer in (browser.get("/"), browser.get(f"/s/{conversation.session_id}"), Client().get("/sign-in")):
        if not answer.content:
            continue
        page = parsed(answer)
        names = {name for name, _ in page.attributes}
        assert "style" not in page.tags
        assert "style" not in names
        assert not {name for name in names if name.startswith("on")}
        assert not [value for _, value in page.attributes if value.startswith(("http:", "https:", "//"))]
        assert answer.content.count(b"<script") == answer.content.count(
            b'type="application/json"'
        ) + answer.content.count(b'<script type="module" src=')


@pytest.mark.both_databases
def test_addresses_and_fields_that_no_database_can_hold_name_nothing(browser: Client, ann: User) -> None:
    mine = world.session(user_id=ann.pk)

    assert browser.get("/s/ses_%00abcdefgh").status_code == 404
    assert browser.get("/s/ses_%00abcdefgh/timeline").status_code == 404
    for form in ({"agent": "a\0b"}, {"model": "a\0b"}, {"title": "a\0b"}):
        assert browser.post(f"/s/{mine}/change", form).status_code < 500
    assert browser.post(f"/s/{mine}/resend", {"replaces": "msg_\0", "text": "x"}).status_code < 500
