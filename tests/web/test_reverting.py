"""What a staged revert looks like, and how it is taken back on the page."""

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app import sessions
from sessions_app.models import Session
from sessions_app.sessions import revert
from tests.web import conversations
from tests.web.conftest import parsed
from tests.web.conversations import Conversation


def _stage(conversation: Conversation) -> str:
    conversation.exchange("one", "two")
    question = sessions.messages_of(Session.objects.get(pk=conversation.session_id))[0].pk
    revert.stage(session_id=conversation.session_id, message_id=question, now=timezone.now())
    return question


def test_what_the_next_message_replaces_is_marked_and_can_be_kept(
    browser: Client, conversation: Conversation
) -> None:
    question = _stage(conversation)
    page = parsed(browser.get(f"/s/{conversation.session_id}"))
    marked = [element for around, _ in page.texts for element in around if "data-staged" in element]
    assert {element["data-message"] for element in marked} == {question}
    assert "takes the place" in page.text(data_slot="staged")

    answer = browser.post(f"/s/{conversation.session_id}/keep")

    assert answer["Location"] == f"/s/{conversation.session_id}"
    assert Session.objects.get().staged_revert == ""
    assert not [
        name for name, _ in parsed(browser.get(answer["Location"])).attributes if name == "data-staged"
    ]


def test_keeping_twice_is_no_error_and_nobody_keeps_for_another(
    browser: Client, bob: User, ann: User
) -> None:
    mine = conversations.begin(ann.pk)
    assert browser.post(f"/s/{mine.session_id}/keep").status_code == 302
    theirs = conversations.begin(bob.pk)
    staged = _stage(theirs)

    assert browser.post(f"/s/{theirs.session_id}/keep").status_code == 404
    assert browser.get(f"/s/{mine.session_id}/keep").status_code == 405
    assert Session.objects.get(pk=theirs.session_id).staged_revert == staged


def test_a_stopped_answer_is_gone_on_with_by_a_form(browser: Client, conversation: Conversation) -> None:
    conversation.prompt("one")
    conversation.promote()
    message = conversation.begin_answer()
    conversation.fail(message, outcome="interrupted", reason="interrupted")
    page = parsed(browser.get(f"/s/{conversation.session_id}"))
    assert "Continue" in page.text(data_slot="go-on")

    browser.post(f"/s/{conversation.session_id}/resume")

    assert Session.objects.get().owed_at is not None


def test_a_failed_answer_offers_to_try_again_to_edit_and_another_model(
    browser: Client, conversation: Conversation
) -> None:
    conversation.prompt("one")
    conversation.promote()
    message = conversation.begin_answer()
    conversation.fail(message, outcome="failed", reason="overflow")

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    said = page.text(data_slot="foot")
    assert "Try again" in said
    assert "Edit the message" in said
    assert "Switch model" in said
