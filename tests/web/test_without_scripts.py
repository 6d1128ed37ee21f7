"""Sending by plain forms."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import Session, SessionInput
from tests.web.conftest import parsed
from tests.web.conversations import Conversation


def _form(client: Client, path: str) -> dict[str, str]:
    """The hidden fields that the page's form would send."""
    html = client.get(path).content.decode()
    form = html[html.index('class="composer"') :]
    fields = {}
    for name in ("message", "session"):
        marker = f'name="{name}" value="'
        if marker in form:
            fields[name] = form.split(marker)[1].split('"')[0]
    return fields


def test_the_first_message_creates_a_chat_and_leads_to_it(browser: Client) -> None:
    form = _form(browser, "/")

    answer = browser.post("/", form | {"text": "Hello there\r\nsecond line"})

    session = Session.objects.get()
    assert answer["Location"] == f"/s/{session.pk}"
    assert session.title == "Hello there"
    prompt = SessionInput.objects.get()
    assert (prompt.session_id, prompt.text) == (session.pk, "Hello there\nsecond line")
    assert "Hello there" in parsed(browser.get(answer["Location"])).text(data_slot="ahead")


def test_the_same_form_sent_twice_makes_one_chat_with_one_message(browser: Client) -> None:
    form = _form(browser, "/") | {"text": "once"}

    assert browser.post("/", form)["Location"] == browser.post("/", form)["Location"]

    assert Session.objects.count() == SessionInput.objects.count() == 1


def test_a_further_message_is_admitted_once_however_often_the_form_is_sent(
    browser: Client, conversation: Conversation
) -> None:
    path = f"/s/{conversation.session_id}"
    form = _form(browser, path) | {"text": "more", "delivery": "queue"}

    for _ in range(3):
        assert browser.post(f"{path}/prompts", form)["Location"] == path

    assert [(each.text, each.delivery) for each in SessionInput.objects.all()] == [("more", "queue")]


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [("  \n ", 422, "no text"), ("x" * 400_001, 413, "at most 400000")],
)
def test_a_refused_message_is_explained_and_its_text_kept(
    browser: Client, conversation: Conversation, text: str, status: int, words: str
) -> None:
    for path, form_path in (
        ("/", "/"),
        (f"/s/{conversation.session_id}/prompts", f"/s/{conversation.session_id}"),
    ):
        answer = browser.post(path, _form(browser, form_path) | {"text": text})

        assert answer.status_code == status
        assert words in parsed(answer).text(role="alert")
        assert parsed(answer).text(id="composer-text") == text
    assert not SessionInput.objects.exists()


def test_another_text_under_a_used_id_is_a_conflict(browser: Client, conversation: Conversation) -> None:
    path = f"/s/{conversation.session_id}"
    form = _form(browser, path)
    browser.post(f"{path}/prompts", form | {"text": "first"})

    answer = browser.post(f"{path}/prompts", form | {"text": "second"})

    assert answer.status_code == 409
    assert [each.text for each in SessionInput.objects.all()] == ["first"]


def test_a_foreign_session_id_in_the_form_creates_nothing(browser: Client, bob: User) -> None:
    from tests.web import conversations

    theirs = conversations.begin(bob.pk)

    answer = browser.post("/", {"session": theirs.session_id, "text": "mine"})

    assert answer.status_code == 409
    assert not SessionInput.objects.exists()


def test_a_form_without_its_csrf_token_sends_nothing(ann: User, conversation: Conversation) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)

    assert client.post(f"/s/{conversation.session_id}/prompts", {"text": "x"}).status_code == 403
    assert client.post("/", {"text": "x"}).status_code == 403
    assert not SessionInput.objects.exists()
