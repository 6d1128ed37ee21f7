"""Decisions on what is unknown: once each, by a person, through one service whichever door they came in."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from recovery import recover, words
from schema.events import AttemptDecided, ToolDecided
from schema.problems import AlreadyDecided, AttemptNotFound, CallNotFound, NotUnknown, Superseded
from sessions_app import inbox, ownership
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt, SessionMessage


def decide_attempt(
    *,
    session_id: str,
    attempt_id: str,
    action: Literal["abandon", "retry"],
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
        if action == "retry" and _has_newer_turn(tx, attempt.message_id):
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
        _go_on(tx)
        attempt.refresh_from_db()
        return attempt


def decide_call(
    *,
    session_id: str,
    call_id: str,
    action: Literal["mark_done", "mark_not_done"],
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
        if not ownership.has_undecided(session_id) and not _has_newer_turn(tx, call.message_id):
            inbox.owe(tx, not_before=now)
        _go_on(tx)
        call.refresh_from_db()
        return call


def _go_on(tx: SessionTransaction) -> None:
    """What waited behind the decision may go; a parked session runs again."""
    inbox.unpark(tx)
    if tx.session.hold_reason == "undecided" and not ownership.has_undecided(tx.session.pk):
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


def _has_newer_turn(tx: SessionTransaction, message_id: str | None) -> bool:
    """Whether a message that a model reads came after this one; then the conversation went on."""
    seq = SessionMessage.objects.filter(pk=message_id).values_list("seq", flat=True).first()
    return SessionMessage.objects.filter(
        session_id=tx.session.pk,
        seq__gt=seq or 0,
        type__in=("user", "synthetic", "assistant"),
        reverted_seq=None,
    ).exists()
