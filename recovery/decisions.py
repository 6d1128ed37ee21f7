"""Decisions on what is unknown: once each, by a person, through one service whichever door they came in."""

from datetime import datetime
from typing import Literal

from django.db.models import OuterRef, QuerySet
from pydantic import JsonValue

from recovery import recover, words
from schema.events import AttemptDecided, ToolDecided
from schema.problems import (
    AlreadyDecided,
    AttemptNotFound,
    CallNotFound,
    InvalidValue,
    NotUnknown,
    Superseded,
)
from sessions_app import inbox, ownership, sessions
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt, SessionMessage

AttemptAction = Literal["abandon", "retry"]
Mark = Literal["mark_done", "mark_not_done"]
CallAction = Literal["approve", "deny", "mark_done", "mark_not_done"]


def decide_attempt(
    *,
    session_id: str,
    attempt_id: str,
    action: AttemptAction,
    by: str,
    now: datetime,
    reason: str | None = None,
) -> ProviderAttempt:
    """Abandon an unknown attempt, or let a new one follow. The unknown one is never sent again.

    Durable once this returns. Raises AlreadyDecided with the first decision, NotUnknown, Superseded (a
    retry after a newer turn), AttemptNotFound.
    """
    with session_transaction(session_id, now=now) as tx:
        attempt = _unknown_attempt(tx, attempt_id)
        if action == "retry" and _is_left_behind(tx, attempt.message_id):
            raise Superseded(attempt_id)
        tx.append(
            AttemptDecided(
                attempt=attempt_id,
                message=attempt.message_id,
                action=action,
                by=by,
                policy=False,
                reason=reason,
            )
        )
        if action == "retry":
            inbox.admit_own(
                tx,
                message_id=recover.continuation_id(attempt_id),
                text=words.RETRY,
                origin="retry",
            )
        go_on(tx)
        attempt.refresh_from_db()
        return attempt


def decide_call(
    *,
    session_id: str,
    call_id: str,
    action: Mark,
    by: str,
    now: datetime,
    reason: str | None = None,
    result: JsonValue = None,
) -> MessagePart:
    """Say what became of an unknown call. Its state stays; the model is told the decision.

    When the last undecided outcome is marked and no newer turn exists, a run is owed in the same
    transaction. Raises AlreadyDecided, NotUnknown or CallNotFound.
    """
    with session_transaction(session_id, now=now) as tx:
        call = _unknown_call(tx, call_id)
        tx.append(
            ToolDecided(
                message=call.message_id,
                part=call_id,
                action=action,
                by=by,
                policy=False,
                reason=reason,
                result=result,
            )
        )
        if not ownership.has_undecided(session_id) and not _is_left_behind(tx, call.message_id):
            inbox.owe(tx, not_before=now)
        go_on(tx)
        call.refresh_from_db()
        return call


def answer_or_mark(
    *,
    session_id: str,
    call_id: str,
    action: CallAction,
    by: str,
    now: datetime,
    reason: str | None = None,
    result: JsonValue = None,
) -> MessagePart:
    """Answer a call that waits for a person, or mark one whose outcome is unknown.

    ``result`` is what a call that is marked done returned. Raises what ``sessions.answer_call`` or
    ``decide_call`` raises, or InvalidValue for a result of anything else.
    """
    if result is not None and action != "mark_done":
        raise InvalidValue(field="result", detail="Only a call that was done has a result.")
    if action == "approve" or action == "deny":
        return sessions.answer_call(
            session_id=session_id, call_id=call_id, action=action, by=by, reason=reason, now=now
        )
    return decide_call(
        session_id=session_id,
        call_id=call_id,
        action=action,
        by=by,
        reason=reason,
        result=result,
        now=now,
    )


def go_on(tx: SessionTransaction) -> None:
    """What waited behind the decision may go; a parked session runs again."""
    inbox.unpark(tx)
    if tx.session.hold_reason == "undecided" and not ownership.has_undecided(tx.session.pk):
        if tx.session.staged_revert:
            tx.set(hold_reason="revert")
        else:
            inbox.lift(tx, because="resume")
    if inbox.is_due(tx.session, now=tx.now):
        wakes.enqueue(tx)


def _unknown_attempt(tx: SessionTransaction, attempt_id: str) -> ProviderAttempt:
    attempt = ProviderAttempt.objects.filter(pk=attempt_id, session_id=tx.session.pk).first()
    if attempt is None:
        raise AttemptNotFound(attempt_id)
    if attempt.unknown_at is None or attempt.state != "unknown":
        raise NotUnknown(attempt_id)
    if attempt.decision is not None:
        raise AlreadyDecided(attempt.decision)
    return attempt


def _unknown_call(tx: SessionTransaction, call_id: str) -> MessagePart:
    call = MessagePart.objects.filter(pk=call_id, session_id=tx.session.pk, kind="tool").first()
    if call is None:
        raise CallNotFound(call_id)
    if call.unknown_at is None:
        raise NotUnknown(call_id)
    if call.decision is not None:
        raise AlreadyDecided(call.decision)
    return call


def _is_left_behind(tx: SessionTransaction, message_id: str | None) -> bool:
    """Whether the conversation went on from that message, or is about to go back behind it."""
    message = SessionMessage.objects.filter(pk=message_id).first()
    if tx.session.staged_revert or (message is not None and message.reverted_seq is not None):
        return True
    return newer_turns(tx.session.pk, after=0 if message is None else message.seq).exists()


def newer_turns(session_id: "str | OuterRef", *, after: "int | OuterRef") -> "QuerySet[SessionMessage]":
    """The visible messages after a position that a model reads."""
    return SessionMessage.objects.filter(
        session_id=session_id, seq__gt=after, type__in=("user", "synthetic", "assistant"), reverted_seq=None
    )
