"""Replay: from the log alone to the projection tables, to prove or to rebuild them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from django.db import models, transaction

from sessions_app.log import projector
from sessions_app.log.errors import LogIncomplete, SessionGone
from sessions_app.log.read import MAX_PAGE, events_after
from sessions_app.models import (
    MessagePart,
    PartCheckpoint,
    ProviderAttempt,
    Session,
    SessionInput,
    SessionMessage,
    SessionNote,
    ToolOverflow,
    Worker,
)

OPERATIONAL: Final[Mapping[type[models.Model], frozenset[str]]] = {
    Session: frozenset(
        {
            "id",
            "user",
            "created_at",
            "head_seq",
            "owner",
            "fence",
            "owed_at",
            "inquiry",
            "step_count",
            "hold_seq",
            "hold_reason",
            "interrupt_fence",
            "interrupt_seq",
            "interrupt_resume",
            "parked",
            "recovery_count",
            "recovering",
            "wake_enqueued_at",
        }
    ),
    SessionInput: frozenset({"wake"}),
    SessionMessage: frozenset(),
    MessagePart: frozenset(),
    ProviderAttempt: frozenset(),
}
"""The projection tables, each with the columns that the log does not give back: identity and what running
needs."""

OPERATIONAL_TABLES: Final[frozenset[type[models.Model]]] = frozenset(
    {PartCheckpoint, SessionNote, ToolOverflow, Worker}
)
"""What the log does not give back as a whole: the text so far, what tools stored, who runs."""

_CHILDREN_FIRST: Final = (MessagePart, ProviderAttempt, SessionMessage, SessionInput)

Rows = dict[str, dict[str, Any]]


class _Different(Exception):
    """Rolls a check back."""


class _Replay:
    """The open transaction as the projector sees it while it replays."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def set(self, **columns: Any) -> None:
        for name, value in columns.items():
            setattr(self.session, name, value)


def rebuild(session_id: str, *, check: bool) -> list[str]:
    """Replay the log into empty projection tables and compare with what was there.

    Returns the differences in words, none when the projections were right. With ``check`` nothing is
    changed; otherwise the replayed rows stay. No hook is called, nothing is woken or dispatched. A crash
    leaves everything as it was.

    Raises SessionGone, LogIncomplete, schema.codec.UndecodableEvent or ProjectionConflict; then nothing
    was changed.
    """
    differences: list[str] = []
    try:
        with transaction.atomic(durable=True):
            session = Session.objects.select_for_update(no_key=True).filter(pk=session_id).first()
            if session is None:
                raise SessionGone(session_id=session_id)
            differences = _replay(session)
            if check:
                raise _Different
    except _Different:
        pass
    return differences


def _replay(session: Session) -> list[str]:
    before = {table: _rows(table, session.pk) for table in OPERATIONAL}
    checkpoints = list(PartCheckpoint.objects.filter(part__session_id=session.pk).values())
    wakes = dict(SessionInput.objects.filter(session_id=session.pk).values_list("pk", "wake"))
    _empty(session)
    _project_all(session)
    _restore_operational(checkpoints, wakes)
    differences: list[str] = []
    for table, rows in before.items():
        differences += _compare(table, rows, _rows(table, session.pk))
    return differences


def _empty(session: Session) -> None:
    PartCheckpoint.objects.filter(part__session_id=session.pk).delete()
    for table in _CHILDREN_FIRST:
        table._default_manager.filter(session_id=session.pk).delete()
    for field in Session._meta.concrete_fields:
        if field.name not in OPERATIONAL[Session] and field.has_default():
            setattr(session, field.attname, field.get_default())


def _project_all(session: Session) -> None:
    target = _Replay(session)
    after = 0
    while page := events_after(session.pk, after=after, limit=MAX_PAGE):
        for event in page:
            if event.seq != after + 1:
                raise LogIncomplete(session_id=session.pk, seq=after + 1)
            projector.project(target, event.decode(), seq=event.seq, at=event.time)
            after = event.seq
    if after != session.head_seq:
        raise LogIncomplete(session_id=session.pk, seq=after + 1)
    session.save(update_fields=_projected_columns(Session))


def _restore_operational(checkpoints: Iterable[Mapping[str, Any]], wakes: Mapping[str, bool]) -> None:
    for message_id, wake in wakes.items():
        SessionInput.objects.filter(pk=message_id).exclude(wake=wake).update(wake=wake)
    open_parts = set(
        MessagePart.objects.filter(pk__in=[row["part_id"] for row in checkpoints], ended_at=None).values_list(
            "pk", flat=True
        )
    )
    PartCheckpoint.objects.bulk_create(
        PartCheckpoint(**row) for row in checkpoints if row["part_id"] in open_parts
    )


def _projected_columns(table: type[models.Model]) -> list[str]:
    return [field.name for field in table._meta.concrete_fields if field.name not in OPERATIONAL[table]]


def _rows(table: type[models.Model], session_id: str) -> Rows:
    key = "pk" if table is Session else "session_id"
    columns = _projected_columns(table)
    rows = table._default_manager.filter(**{key: session_id}).values("pk", *columns)
    return {row["pk"]: row for row in rows}


def _compare(table: type[models.Model], before: Rows, after: Rows) -> list[str]:
    name = table._meta.object_name
    found = [f"{name} {pk}: in the table, not in the log" for pk in before.keys() - after.keys()]
    found += [f"{name} {pk}: in the log, not in the table" for pk in after.keys() - before.keys()]
    for pk in sorted(before.keys() & after.keys()):
        found += [
            f"{name} {pk}: {column} is {_show(before[pk][column])}, the log says {_show(value)}"
            for column, value in after[pk].items()
            if before[pk][column] != value
        ]
    return sorted(found)


def _show(value: Any) -> str:
    """Enough to find it; long text is not repeated in full."""
    text = value.isoformat() if isinstance(value, datetime) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
