"""Notes that belong to a session: what a model wants to find again after its context was cut."""

from typing import Final, Literal

from django.utils import timezone

from sessions_app.log import session_transaction
from sessions_app.models import SessionNote
from sessions_app.tools.declare import tool
from sessions_app.tools.port import ToolContext

MAX_NOTES: Final = 100
MAX_NAME_CHARACTERS: Final = 100
MAX_TEXT_CHARACTERS: Final = 100_000


class BadNote(Exception):
    """The note cannot be kept or found as asked; the text says why."""


@tool(effect="idempotent", timeout_seconds=30)
def notebook(
    action: Literal["read", "write"], context: ToolContext, name: str = "notes", text: str = ""
) -> str:
    """Read or write a named note of this conversation. Notes stay until the conversation is deleted.

    Args:
        action: "read" gives the text of the note, "write" replaces it.
        name: The name of the note.
        text: With "write", the whole new text; an empty one removes the note.
    """
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise BadNote(f"The name of a note has 1 to {MAX_NAME_CHARACTERS} characters.")
    if action == "read":
        return _read(context.session_id, name)
    if len(text) > MAX_TEXT_CHARACTERS:
        raise BadNote(f"A note has at most {MAX_TEXT_CHARACTERS:,} characters.")
    return _write(context.session_id, name, text)


def _read(session_id: str, name: str) -> str:
    notes = SessionNote.objects.filter(session_id=session_id)
    note = notes.filter(name=name).first()
    if note is not None:
        return note.text
    names = ", ".join(notes.order_by("name").values_list("name", flat=True))
    raise BadNote(
        f"There is no note {name!r}. " + (f"There are: {names}." if names else "There are none yet.")
    )


def _write(session_id: str, name: str, text: str) -> str:
    """Written again, it adds nothing. Raises log.SessionGone when the session was deleted meanwhile."""
    now = timezone.now()
    with session_transaction(session_id, now=now):
        notes = SessionNote.objects.filter(session_id=session_id)
        if not text:
            notes.filter(name=name).delete()
            return f"The note {name!r} is removed."
        if not notes.filter(name=name).exists() and notes.count() >= MAX_NOTES:
            raise BadNote(f"There are {MAX_NOTES} notes already. Remove one first.")
        SessionNote.objects.update_or_create(
            session_id=session_id, name=name, defaults={"text": text, "updated_at": now}
        )
    return f"The note {name!r} is written ({len(text):,} characters)."
