"""Going back: hide the transcript from a message on, and perhaps say something else instead."""

from datetime import datetime

from schema.problems import MessageNotFound, SessionBusy
from sessions_app import inbox, ownership
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import SessionMessage
from sessions_app.sessions.prompt import prompt


def stage(*, session_id: str, message_id: str, now: datetime) -> None:
    """Mark the message from which on the next prompt hides the transcript. A second mark replaces the first.

    Durable once this returns, and nothing is hidden yet; what is pending waits. The same mark again
    changes nothing. Raises SessionBusy while something runs, is owed or waits for a person,
    MessageNotFound, or log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        _stage(tx, message_id)


def clear(*, session_id: str, now: datetime) -> bool:
    """Take the mark away; what waited only for it may go. False when nothing was staged.

    Raises log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        if not tx.session.staged_revert:
            return False
        inbox.clear_revert(tx)
        if inbox.is_due(tx.session, now=now):
            wakes.enqueue(tx)
        return True


def edit_and_resend(
    *, session_id: str, message_id: str, text: str, now: datetime, new_message_id: str | None = None
) -> inbox.Admission:
    """Hide the transcript from the message on and admit a prompt in its place, all of it or nothing.

    A repeat with the same new id, text and session returns the first record and hides nothing more.
    Raises what ``stage`` and ``prompt`` raise; then nothing was changed.
    """
    return prompt(
        session_id=session_id,
        text=text,
        message_id=new_message_id,
        now=now,
        first=lambda tx: _stage(tx, message_id),
    )


def _stage(tx: SessionTransaction, message_id: str) -> None:
    visible = SessionMessage.objects.filter(session_id=tx.session.pk, reverted_seq=None)
    if not visible.filter(pk=message_id).exists():
        raise MessageNotFound(message_id)
    if _is_busy(tx):
        raise SessionBusy(tx.session.pk)
    if tx.session.staged_revert != message_id:
        inbox.stage_revert(tx, message_id=message_id)


def _is_busy(tx: SessionTransaction) -> bool:
    """Whether somebody writes the transcript, is about to, or comes back to an unfinished step."""
    session = tx.session
    return (
        session.owner_id is not None
        or session.owed_at is not None
        or ownership.has_unsettled_work(session.pk)
        or SessionMessage.objects.filter(session_id=session.pk, completed_at=None).exists()
    )
