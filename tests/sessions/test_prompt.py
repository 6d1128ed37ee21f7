"""Sending a prompt: what is refused before anything is stored."""

from typing import Any

import pytest

from schema.limits import MAX_PROMPT_CHARACTERS
from schema.problems import EmptyPrompt, InvalidId, PromptTooLarge
from sessions_app import sessions
from sessions_app.models import SessionInput
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def send(session_id: str, text: str, **arguments: Any) -> str:
    return sessions.prompt(session_id=session_id, text=text, now=world.NOW, **arguments).prompt.pk


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\ud83d", "\0 \udc00\n"])
def test_a_prompt_without_text_is_refused(text: str) -> None:
    with pytest.raises(EmptyPrompt):
        send(world.session(), text)

    assert not SessionInput.objects.exists()


def test_a_prompt_of_the_greatest_length_is_stored_and_one_character_more_is_refused() -> None:
    session_id = world.session()

    stored = send(session_id, "é" * MAX_PROMPT_CHARACTERS)
    with pytest.raises(PromptTooLarge) as refused:
        send(session_id, "é" * (MAX_PROMPT_CHARACTERS + 1))

    assert len(world.input_row(stored).text) == MAX_PROMPT_CHARACTERS
    assert (refused.value.size, refused.value.limit) == (MAX_PROMPT_CHARACTERS + 1, MAX_PROMPT_CHARACTERS)


def test_text_is_cleaned_before_it_is_counted_compared_or_stored() -> None:
    session_id = world.session()

    first = send(session_id, "\ud83d\ude00 hi\0", message_id="msg_cleaned-once")
    again = send(session_id, "\U0001f600 hi", message_id="msg_cleaned-once")

    assert first == again
    assert world.input_row(first).text == "\U0001f600 hi"
    send(session_id, "a" * MAX_PROMPT_CHARACTERS + "\0")


def test_white_space_around_a_prompt_is_kept() -> None:
    assert world.input_row(send(world.session(), "  code\n")).text == "  code\n"


@pytest.mark.parametrize(
    "message_id", ["", "msg_short", "ses_of-a-session", "msg_rec-0123456789", "msg_with space"]
)
def test_an_id_that_no_client_may_choose_is_refused(message_id: str) -> None:
    with pytest.raises(InvalidId):
        send(world.session(), "Hello", message_id=message_id)

    assert not SessionInput.objects.exists()


def test_a_prompt_steers_and_wakes_unless_told_otherwise() -> None:
    session_id = world.session()

    stored = world.input_row(send(session_id, "Hello"))

    assert (stored.delivery, stored.wake, stored.origin) == ("steer", True, "user")
    assert world.wakes() == [session_id]
