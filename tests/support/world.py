"""The rows that tests of the core start from, made by the product's own verbs where there is one."""

import itertools
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import models
from django_q.models import OrmQ

from schema.inputs import Delivery
from sessions_app import identity, inbox, ownership, sessions
from sessions_app.log import Held, SessionTransaction, session_transaction
from sessions_app.models import Session, SessionEvent, SessionInput, Worker

NOW: Final = datetime(2031, 5, 4, 12, 0, tzinfo=UTC)

_numbers: Final = itertools.count(1)


def after(seconds: float) -> datetime:
    """A moment that many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def user(name: str = "") -> int:
    return int(get_user_model().objects.create_user(username=name or f"user-{next(_numbers)}").pk)


def session(*, user_id: int | None = None, **arguments: Any) -> str:
    """A new session, of a new user if none is given."""
    owner = user() if user_id is None else user_id
    return sessions.create(user_id=owner, now=NOW, **arguments).session.pk


def prompt(
    session_id: str,
    text: str = "Hello",
    *,
    message_id: str | None = None,
    delivery: Delivery = "steer",
    wake: bool = True,
    now: datetime = NOW,
) -> str:
    """Admit a user's prompt; returns its id."""
    admission = inbox.admit(
        session_id=session_id,
        message_id=message_id or identity.new_message_id(),
        text=text,
        delivery=delivery,
        wake=wake,
        now=now,
    )
    return admission.prompt.pk


def worker(**columns: Any) -> Worker:
    """A worker's row whose death nothing proves: its lock file is not there."""
    described: dict[str, Any] = {
        "id": identity.new_worker_id(),
        "host": "host",
        "boot_id": "another boot",
        "kind": "worker",
        "pid": 1,
        "lock_path": "/nowhere/worker.lock",
        "lock_device": 0,
        "lock_inode": 0,
        "started_at": NOW,
        "heartbeat_at": NOW,
    }
    return Worker.objects.create(**(described | columns))


def take(session_id: str, worker_id: str | None = None, *, now: datetime = NOW) -> Held:
    """Make a worker the owner of a session that is due; the wake that led there is used up."""
    owner = worker_id or worker().pk
    with session_transaction(session_id, now=now) as tx:
        tx.set(wake_enqueued_at=None)
        taken = ownership.take(tx, worker_id=owner)
    assert isinstance(taken, Held), taken
    return taken


def promote(held: Held, *, now: datetime = NOW) -> list[str]:
    """Promote as a drain does, and count the run as begun: nothing is owed any more."""
    with session_transaction(held.session_id, now=now, held=held) as tx:
        promoted = inbox.promote(tx)
        inbox.clear(tx)
    return promoted


def owned(*, user_id: int | None = None) -> Held:
    """A session whose owner has promoted its only prompt."""
    session_id = session(user_id=user_id)
    prompt(session_id)
    held = take(session_id)
    promote(held)
    return held


def change(session_id: str, **columns: Any) -> None:
    """Set operational columns of a session."""
    Session.objects.filter(pk=session_id).update(**columns)


def row(session_id: str) -> Session:
    return Session.objects.get(pk=session_id)


def pending(session_id: str) -> "models.QuerySet[SessionInput]":
    """What is neither promoted nor withdrawn, in admission order."""
    return SessionInput.objects.filter(session_id=session_id, promoted_seq=None, withdrawn_seq=None).order_by(
        "admitted_seq"
    )


def input_row(message_id: str) -> SessionInput:
    return SessionInput.objects.get(pk=message_id)


def event_types(session_id: str) -> list[str]:
    return list(
        SessionEvent.objects.filter(session_id=session_id).values_list("type", flat=True).order_by("seq")
    )


def seqs(session_id: str) -> list[int]:
    return list(
        SessionEvent.objects.filter(session_id=session_id).values_list("seq", flat=True).order_by("seq")
    )


def wakes() -> list[str]:
    """The sessions of the wakes in the queue, oldest first."""
    return [queued.task["args"][0] for queued in OrmQ.objects.order_by("pk")]


def forget_wakes(session_id: str) -> None:
    """As if every wake of the queue had run and met nothing to do."""
    forget_queue()
    change(session_id, wake_enqueued_at=None)


def forget_queue() -> None:
    """Lose every wake."""
    OrmQ.objects.all().delete()


def rows_of(model: type[models.Model], **where: Any) -> list[Mapping[str, Any]]:
    """What a table holds, to prove later that it did not move."""
    return list(model._default_manager.filter(**where).order_by("pk").values())


def everything_of(session_id: str) -> dict[str, list[Mapping[str, Any]]]:
    """All rows of one session in every table that names sessions."""
    found = {"Session": rows_of(Session, pk=session_id)}
    for relation in Session._meta.related_objects:
        model = relation.related_model
        assert isinstance(model, type)
        found[model.__name__] = rows_of(model, session_id=session_id)
    return found


def transaction(held: Held, *, now: datetime = NOW) -> AbstractContextManager[SessionTransaction]:
    """A session transaction as the owner."""
    return session_transaction(held.session_id, now=now, held=held)
