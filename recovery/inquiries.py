"""Asking providers and tools what became of an unknown outcome. An inquiry is no decision: it can be repeated."""

import logging
from datetime import datetime
from typing import Final

from recovery import decisions
from schema.problems import AlreadyDecided, AttemptNotFound, CallNotFound, CannotAsk, NotUnknown
from sessions_app import inbox
from sessions_app.attempts import asking
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.tools import reconcile

logger = logging.getLogger(__name__)

_NOT_KEPT: Final = "its provider keeps no responses. Abandon it, or try again."


def ask_about_attempt(*, session_id: str, attempt_id: str, now: datetime) -> None:
    """Have the provider of an unknown attempt asked; only a conclusive answer settles it.

    As long as nothing came after its message, a worker asks and goes on with the real answer: the run that
    does so is durable once this returns. After a newer turn the attempt alone is settled, here and now.
    Raises NotUnknown, CannotAsk or AttemptNotFound.
    """
    with session_transaction(session_id, now=now) as tx:
        attempt, is_left_to_a_worker = _owe(tx, attempt_id)
    if is_left_to_a_worker:
        return
    keeper = asking.find_askable(attempt)
    settled = None if keeper is None else asking.ask(attempt, keeper)
    if settled is None:
        return
    with session_transaction(session_id, now=now) as tx:
        _, is_left_to_a_worker = _owe(tx, attempt_id)
        if not is_left_to_a_worker:
            tx.append(settled)
            decisions.go_on(tx)


def _owe(tx: SessionTransaction, attempt_id: str) -> tuple[ProviderAttempt, bool]:
    """The attempt, and whether a worker asks because its answer still belongs into the transcript."""
    attempt = ProviderAttempt.objects.filter(pk=attempt_id, session_id=tx.session.pk).first()
    if attempt is None:
        raise AttemptNotFound(attempt_id)
    if attempt.state != "unknown":
        raise NotUnknown(attempt_id)
    if asking.find_askable(attempt) is None:
        raise CannotAsk(attempt_id, _NOT_KEPT)
    if tx.session.inquiry == attempt_id:
        return attempt, True
    if tx.session.owner_id is not None or not asking.may_reopen(tx, attempt):
        return attempt, False
    inbox.unpark(tx)
    inbox.owe_inquiry(tx, attempt_id=attempt_id)
    wakes.enqueue(tx)
    return attempt, True


def ask_about_call(*, session_id: str, call_id: str, now: datetime) -> None:
    """Ask the tool of an unknown call; a conclusive answer marks it done or not done, as a person would.

    Raises NotUnknown, AlreadyDecided, CannotAsk or CallNotFound.
    """
    call = MessagePart.objects.filter(pk=call_id, session_id=session_id, kind="tool").first()
    if call is None:
        raise CallNotFound(call_id)
    if call.unknown_at is None:
        raise NotUnknown(call_id)
    if call.decision is not None:
        raise AlreadyDecided(call.decision)
    found = reconcile.ask(call)
    if found.happened == "cannot_tell":
        logger.info("tools.reconcile.cannot_tell", extra={"tool": call.name, "call": call_id})
        return
    has_happened = found.happened == "yes"
    decisions.decide_call(
        session_id=session_id,
        call_id=call_id,
        action="mark_done" if has_happened else "mark_not_done",
        by=f"the tool {call.name}",
        reason="asked",
        result=(found.output or None) if has_happened else None,
        now=now,
    )
