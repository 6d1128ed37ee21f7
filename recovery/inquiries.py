"""Asking providers and tools what became of an unknown outcome. An inquiry is no decision: it can be repeated."""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from recovery import decisions
from schema.events import AttemptSettled
from schema.problems import AlreadyDecided, AttemptNotFound, CallNotFound, CannotAsk, NotUnknown
from sessions_app import inbox
from sessions_app.attempts import asking
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.tools import reconcile
from sessions_app.tools.port import Reconciled

logger = logging.getLogger(__name__)

_NOT_KEPT: Final = "its provider keeps no responses. Abandon it, or try again."


Settle = Callable[[], None]
Look = Callable[[], Settle | None]
"""Asks and waits, holding no transaction; what it found out, if anything, is stored by what it returns."""


def ask_about_attempt(*, session_id: str, attempt_id: str, now: datetime) -> None:
    """Have the provider of an unknown attempt asked; only a conclusive answer settles it.

    Raises what ``about_attempt`` raises.
    """
    look = about_attempt(session_id=session_id, attempt_id=attempt_id, now=now)
    _ask(look)


def ask_about_call(*, session_id: str, call_id: str, now: datetime) -> None:
    """Ask the tool of an unknown call. Raises what ``about_call`` raises."""
    _ask(about_call(session_id=session_id, call_id=call_id, now=now))


def _ask(look: Look | None) -> None:
    settle = None if look is None else look()
    if settle is not None:
        settle()


def about_attempt(*, session_id: str, attempt_id: str, now: datetime) -> Look | None:
    """How the provider of an unknown attempt is asked; None when a worker does that.

    As long as nothing came after its message, a worker asks and goes on with the real answer: the run that
    does so is durable once this returns. After a newer turn the attempt alone is settled, by whoever looks.
    Raises NotUnknown, CannotAsk or AttemptNotFound.
    """
    with session_transaction(session_id, now=now) as tx:
        attempt, is_left_to_a_worker = _owe(tx, attempt_id)
    keeper = None if is_left_to_a_worker else asking.find_askable(attempt)
    if keeper is None:
        return None

    def look() -> Settle | None:
        settled = asking.ask(attempt, keeper)
        return None if settled is None else partial(_settle, session_id, settled, now)

    return look


def _settle(session_id: str, settled: AttemptSettled, now: datetime) -> None:
    with session_transaction(session_id, now=now) as tx:
        _, is_left_to_a_worker = _owe(tx, settled.attempt)
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


def about_call(*, session_id: str, call_id: str, now: datetime) -> Look:
    """How the tool of an unknown call is asked; what it knows marks the call done or not done, as a person would.

    Raises NotUnknown, AlreadyDecided, CannotAsk or CallNotFound.
    """
    call = MessagePart.objects.filter(pk=call_id, session_id=session_id, kind="tool").first()
    if call is None:
        raise CallNotFound(call_id)
    if call.unknown_at is None:
        raise NotUnknown(call_id)
    if call.decision is not None:
        raise AlreadyDecided(call.decision)
    reconcile.get_reconcile(call)
    return partial(_look_at_call, call, now)


def _look_at_call(call: MessagePart, now: datetime) -> Settle | None:
    found = reconcile.ask(call)
    if found.happened == "cannot_tell":
        logger.info("tools.reconcile.cannot_tell", extra={"tool": call.name, "call": call.pk})
        return None
    return partial(_mark, call, found, now)


def _mark(call: MessagePart, found: Reconciled, now: datetime) -> None:
    has_happened = found.happened == "yes"
    decisions.decide_call(
        session_id=call.session_id,
        call_id=call.pk,
        action="mark_done" if has_happened else "mark_not_done",
        by=f"the tool {call.name}",
        reason="asked",
        result=(found.output or None) if has_happened else None,
        now=now,
    )
