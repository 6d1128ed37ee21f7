"""What a person changes by forms: chats, earlier messages, settings."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app import sessions
from sessions_app.access import tokens
from sessions_app.models import ApiToken, Session, SessionMessage
from tests.web import conversations
from tests.web.conftest import parsed
from tests.web.conversations import Conversation


def test_a_chat_is_renamed_pinned_and_archived(browser: Client, conversation: Conversation) -> None:
    address = f"/s/{conversation.session_id}/change"

    for change in (
        {"title": " New <b> "},
        {"pinned": "true"},
        {"archived": "true"},
        {"archived": "nonsense"},
    ):
        assert browser.post(address, change).status_code == 302

    session = Session.objects.get()
    assert (session.title, session.pinned, session.archived) == ("New <b>", True, True)


def test_a_model_that_cannot_be_is_refused_in_words(browser: Client, conversation: Conversation) -> None:
    answer = browser.post(f"/s/{conversation.session_id}/change", {"model": "nonsense"}, follow=True)

    assert "nonsense" in parsed(answer).text(role="alert")
    assert Session.objects.get().model == "demo:scripted"


def test_editing_puts_the_earlier_text_into_the_composer(browser: Client, conversation: Conversation) -> None:
    question = conversation.prompt("one\n <two>")
    conversation.promote()
    message = conversation.begin_answer()
    conversation.end_answer(message)

    page = parsed(browser.get(f"/s/{conversation.session_id}?edit={question}"))

    assert page.text(id="composer-text") == "one\n <two>"
    assert ("action", f"/s/{conversation.session_id}/resend") in page.attributes
    assert ("value", question) in page.attributes


def test_sending_again_hides_what_followed_and_says_the_new_text(
    browser: Client, conversation: Conversation
) -> None:
    conversation.exchange("first", "answer one")
    conversation.exchange("second", "answer two")
    second = SessionMessage.objects.get(text="second").pk

    browser.post(f"/s/{conversation.session_id}/resend", {"replaces": second, "text": "other"})

    page = parsed(browser.get(f"/s/{conversation.session_id}"))
    assert "answer two" not in page.text(data_slot="transcript")
    assert "answer one" in page.text(data_slot="transcript")
    assert "other" in page.text(data_slot="ahead")


def test_regenerating_says_the_last_question_again(browser: Client, conversation: Conversation) -> None:
    conversation.exchange("why?", "because")
    question = SessionMessage.objects.get(type="user").pk
    page = parsed(browser.get(f"/s/{conversation.session_id}"))
    assert ("name", "replaces") in page.attributes
    assert ("value", question) in page.attributes

    browser.post(f"/s/{conversation.session_id}/resend", {"replaces": question})

    pending = [prompt.text for prompt in sessions.prompts_of(Session.objects.get())]
    assert pending == ["why?"]


def test_nothing_is_replaced_while_an_answer_is_written(browser: Client, conversation: Conversation) -> None:
    question = conversation.prompt("why?")
    conversation.promote()
    conversation.begin_answer()

    answer = browser.post(
        f"/s/{conversation.session_id}/resend", {"replaces": question, "text": "x"}, follow=True
    )

    assert parsed(answer).text(role="alert") != ""
    assert not SessionMessage.objects.exclude(reverted_seq=None).exists()


def test_a_chat_is_deleted_after_a_question(browser: Client, conversation: Conversation) -> None:
    address = f"/s/{conversation.session_id}/delete"
    assert "Delete this chat?" in browser.get(address).content.decode()
    assert Session.objects.exists()

    assert browser.post(address)["Location"] == "/"

    assert not Session.objects.exists()


@pytest.mark.parametrize("verb", ["change", "resend", "delete"])
def test_another_person_finds_nothing_there(bob: User, conversation: Conversation, verb: str) -> None:
    client = Client()
    client.force_login(bob)

    answer = client.post(f"/s/{conversation.session_id}/{verb}", {"title": "mine now", "replaces": "x"})

    assert answer.status_code == 404
    assert Session.objects.get().title == "About logs"


@pytest.mark.both_databases
def test_search_finds_what_was_said_and_shows_the_words_around_it(browser: Client, ann: User) -> None:
    asked = conversations.begin(ann.pk, title="One")
    asked.exchange("long before " * 20 + "where is my Umbrella?" + " long after" * 20, "In the hall.")
    answered = conversations.begin(ann.pk, title="Two")
    answered.exchange("It rains.", "Take an umbrella\nand boots.")
    conversations.begin(ann.pk, title="Umbrella stand")
    conversations.begin(ann.pk, title="Nothing").exchange("a", "b")
    conversations.begin(ann.pk, title="The umbrella and…").exchange("The umbrella and the rain", "Yes.")

    page = parsed(browser.get("/", {"q": "umbrella"}))

    titles = [text for around, text in page.texts if around and around[-1].get("data-slot") == "title"]
    found = [text for around, text in page.texts if around and around[-1].get("class") == "chat-snippet"]
    assert titles == ["The umbrella and…", "Umbrella stand", "Two", "One"]
    assert found[0] == "Take an umbrella and boots."
    assert "where is my Umbrella? long after" in found[1]
    assert all(len(text) <= 120 for text in found)


@pytest.mark.parametrize("query", ["%", "_", "\\", "'", '"', "100%"])
def test_a_search_takes_signs_as_they_are(browser: Client, ann: User, query: str) -> None:
    conversations.begin(ann.pk, title="plain").exchange("nothing special", "at all")

    page = parsed(browser.get("/", {"q": query}))

    assert "No chat has this" in page.text(data_slot="chat-list")


def test_search_looks_at_titles_and_knows_conditions(browser: Client, ann: User, bob: User) -> None:
    conversations.begin(ann.pk, title="Bread and butter")
    conversations.begin(ann.pk, title="Logs")
    conversations.begin(bob.pk, title="Bread of bob")
    old = conversations.begin(ann.pk, title="Old bread")
    browser.post(f"/s/{old.session_id}/change", {"archived": "true"})

    def found(query: str) -> list[str]:
        page = parsed(browser.get("/", {"q": query}))
        return [text for around, text in page.texts if around and around[-1].get("data-slot") == "title"]

    assert found("bread") == ["Bread and butter"]
    assert found("archived: bread") == ["Old bread"]
    assert found("needs:decision") == []
    assert found("<b>") == []


def test_a_pinned_chat_stands_on_top(browser: Client, ann: User) -> None:
    first = conversations.begin(ann.pk, title="first")
    conversations.begin(ann.pk, title="second")
    browser.post(f"/s/{first.session_id}/change", {"pinned": "true"})

    page = parsed(browser.get("/"))

    assert next(value for name, value in page.attributes if name == "data-chat") == first.session_id


def test_the_theme_is_kept_by_the_browser(browser: Client) -> None:
    browser.post("/settings/looks", {"theme": "dark"})
    assert ("data-theme", "dark") in parsed(browser.get("/")).attributes

    browser.post("/settings/looks", {"theme": '"><script>'})
    assert ("data-theme", "dark") in parsed(browser.get("/")).attributes


def test_a_hostile_cookie_is_no_theme(browser: Client) -> None:
    browser.cookies["theme"] = "x"

    assert "data-theme" not in dict(parsed(browser.get("/")).attributes)


def test_a_token_is_shown_once_and_lets_in_until_it_is_revoked(browser: Client, ann: User) -> None:
    secret = parsed(browser.post("/settings/tokens", {"name": "script <b>"})).text(**{"class": "secret"})
    user = tokens.find_user(secret)
    assert user is not None
    assert user.pk == ann.pk
    page = browser.get("/settings")
    assert secret not in page.content.decode()
    assert "script &lt;b&gt;" in page.content.decode()

    browser.post(f"/settings/tokens/{ApiToken.objects.get().pk}/revoke")

    assert tokens.find_user(secret) is None


def test_a_token_of_another_person_is_not_revoked(browser: Client, bob: User) -> None:
    client = Client()
    client.force_login(bob)
    client.post("/settings/tokens", {"name": "bob's"})

    browser.post(f"/settings/tokens/{ApiToken.objects.get().pk}/revoke")

    assert ApiToken.objects.get().revoked_at is None
    assert "bob" not in parsed(browser.get("/settings")).text(**{"class": "tokens"})


def test_a_new_password_keeps_this_browser_and_signs_out_the_others(browser: Client, ann: User) -> None:
    other = Client()
    other.force_login(ann)
    wrong = {"old_password": "no", "new_password1": "quite another one", "new_password2": "quite another one"}
    assert browser.post("/settings/password", wrong).status_code == 422

    browser.post("/settings/password", {**wrong, "old_password": "a long enough one"})

    assert browser.get("/settings").status_code == 200
    assert other.get("/settings").status_code == 302


@pytest.mark.parametrize("path", ["/settings", "/settings/tokens", "/settings/password", "/settings/looks"])
def test_settings_need_a_person(client: Client, db: None, ann: User, path: str) -> None:
    assert client.post(path).status_code in (302, 405)
    assert not ApiToken.objects.exists()
