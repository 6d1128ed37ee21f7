"""Sending a prompt, and changing one that still waits."""

from collections.abc import Callable
from datetime import datetime

from schema.ids import is_client_message_id
from schema.inputs import Delivery
from schema.limits import MAX_PROMPT_CHARACTERS
from schema.problems import EmptyPrompt, InvalidId, PromptTooLarge
from schema.text import clean
from sessions_app import identity, inbox
from sessions_app.log import SessionTransaction
from sessions_app.models import SessionInput


def prompt(
    *,
    session_id: str,
    text: str,
    now: datetime,
    message_id: str | None = None,
    delivery: Delivery = "steer",
    wake: bool = True,
    first: Callable[[SessionTransaction], None] | None = None,
) -> inbox.Admission:
    """Admit a prompt. Once this returns it is durable; a repeat with the same id gives the same record.

    ``first`` is done before a new prompt, in its transaction; see inbox.admit.

    Raises InvalidId, EmptyPrompt, PromptTooLarge, PromptConflict, or log.SessionGone.
    """
    if message_id is not None and not is_client_message_id(message_id):
        raise InvalidId(message_id)
    cleaned = clean(text)
    if not cleaned.strip():
        raise EmptyPrompt
    if len(cleaned) > MAX_PROMPT_CHARACTERS:
        raise PromptTooLarge(size=len(cleaned), limit=MAX_PROMPT_CHARACTERS)
    return inbox.admit(
        session_id=session_id,
        message_id=message_id or identity.new_message_id(),
        text=cleaned,
        delivery=delivery,
        wake=wake,
        now=now,
        first=first,
    )


def withdraw(*, session_id: str, message_id: str, now: datetime) -> None:
    """See inbox.withdraw."""
    inbox.withdraw(session_id=session_id, message_id=message_id, now=now)


def change_delivery(*, session_id: str, message_id: str, delivery: Delivery, now: datetime) -> SessionInput:
    """See inbox.change_delivery."""
    return inbox.change_delivery(session_id=session_id, message_id=message_id, delivery=delivery, now=now)
