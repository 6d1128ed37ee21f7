"""Admission: a prompt becomes durable, with its event and its wake, in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import IntegrityError

from schema.events import PromptAdmitted
from schema.inputs import Delivery, Origin, content_digest
from schema.problems import PromptConflict
from sessions_app.inbox import known_ids
from sessions_app.inbox.hold import commit_revert, lift, unpark
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import SessionInput


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The stored prompt, and whether this call stored it."""

    prompt: SessionInput
    created: bool


def admit(
    *,
    session_id: str,
    message_id: str,
    text: str,
    delivery: Delivery,
    wake: bool,
    now: datetime,
    origin: Origin = "user",
    first: Callable[[SessionTransaction], None] | None = None,
) -> Admission:
    """Store a prompt, or return the record of the same prompt that was stored before.

    ``text`` is clean and not empty. Once this returns, the prompt survives any crash. A repeat with the
    same id, session, text and delivery returns the original record however often and however
    concurrently it comes; while it is pending a repeat also wakes again. ``first`` is done before a new
    prompt, in its transaction; a repeat leaves it out.

    Raises SessionGone, PromptConflict when the id is known for anything else anywhere, or what ``first``
    raises.
    """
    digest = content_digest(text)
    try:
        with session_transaction(session_id, now=now) as tx:
            kinds = known_ids.kinds_of(message_id)
            # Its session may be deleted between the two looks; then its tombstone speaks for it.
            known = SessionInput.objects.filter(pk=message_id).first() if "input" in kinds else None
            if known is not None:
                return _repeat(tx, known, digest=digest, delivery=delivery, wake=wake)
            if kinds:
                raise PromptConflict(message_id)
            if first is not None:
                first(tx)
            return _store(
                tx,
                PromptAdmitted(
                    message=message_id, text=text, digest=digest, delivery=delivery, origin=origin, wake=wake
                ),
            )
    except IntegrityError:
        # Another session admitted the same id between our look and our insert.
        raise PromptConflict(message_id) from None


def admit_own(
    tx: SessionTransaction, *, message_id: str, text: str, origin: Literal["recovery", "retry"]
) -> None:
    """Admit an input of the system's own in the caller's transaction; the caller wakes.

    Raises django.db.IntegrityError when the id was admitted before: then nothing of ``tx`` is stored.
    """
    tx.append(
        PromptAdmitted(
            message=message_id,
            text=text,
            digest=content_digest(text),
            delivery="steer",
            origin=origin,
            wake=True,
        )
    )


def _store(tx: SessionTransaction, event: PromptAdmitted) -> Admission:
    seq = tx.append(event)
    if event.wake:
        _wake(tx, origin=event.origin)
    stored = SessionInput.admitted(event, session_id=tx.session.pk, seq=seq, at=tx.now)
    return Admission(prompt=stored, created=True)


def _repeat(
    tx: SessionTransaction, known: SessionInput, *, digest: str, delivery: Delivery, wake: bool
) -> Admission:
    same = (known.session_id, known.digest, known.delivery_admitted) == (tx.session.pk, digest, delivery)
    if not same:
        raise PromptConflict(known.pk)
    is_pending = known.promoted_seq is None and known.withdrawn_seq is None
    if wake and is_pending:
        if not known.wake:
            known.wake = True
            SessionInput.objects.filter(pk=known.pk).update(wake=True)
            _wake(tx, origin=known.origin)
        else:
            wakes.enqueue(tx)
    return Admission(prompt=known, created=False)


def _wake(tx: SessionTransaction, *, origin: str) -> None:
    """A person's prompt that is to run goes past what holds the session back, and takes the rest along."""
    if origin == "user":
        commit_revert(tx)
        lift(tx, because="prompt")
        unpark(tx)
    wakes.enqueue(tx)
