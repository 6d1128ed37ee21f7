"""Promotion: pending inputs enter the transcript, at a safe boundary, in the owner's transaction."""

from collections.abc import Iterable

from schema.events import PromptPromoted
from sessions_app.inbox.owed import owe
from sessions_app.inbox.pending import promotable
from sessions_app.log import SessionTransaction
from sessions_app.models import SessionInput


def promote(tx: SessionTransaction) -> list[str]:
    """Promote every promotable steer, or else the oldest queued input. Returns the message ids.

    A run is owed from here on, in the same transaction: a crash before the next request leaves the
    promoted input with the promise that it will be answered.
    """
    waiting = promotable(tx.session)
    steers = [prompt for prompt in waiting if prompt.delivery == "steer"]
    return _promote(tx, steers or waiting[:1])


def promote_steers(tx: SessionTransaction) -> list[str]:
    """Promote every promotable steer and leave the queue alone."""
    return _promote(tx, promotable(tx.session, delivery="steer"))


def _promote(tx: SessionTransaction, prompts: Iterable[SessionInput]) -> list[str]:
    promoted = []
    for prompt in prompts:
        tx.append(PromptPromoted(message=prompt.pk))
        promoted.append(prompt.pk)
        if prompt.origin == "user":
            tx.set(step_count=0, recovery_count=0)
    if promoted:
        owe(tx, not_before=tx.now)
    return promoted
