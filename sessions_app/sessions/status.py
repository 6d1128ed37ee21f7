"""Status, derived from durable facts and the owner's liveness, never from a process's memory."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, CharField, Count, F, IntegerField, Max, Q, TextField, Value, When
from django.db.models.functions import Cast

from schema.problems import SessionNotFound
from schema.status import Facts, Pending, Retry, Status, Unknown, derive
from sessions_app import agents, ownership
from sessions_app.models import (
    Agent,
    MessagePart,
    ProviderAttempt,
    Session,
    SessionInput,
    SessionMessage,
    Worker,
    statements,
)
from sessions_app.sessions.shapes import rfc3339

if TYPE_CHECKING:
    from django.db.models import QuerySet


@dataclass
class _Found:
    steer: int = 0
    queue: int = 0
    newest_wanting_wake: int = 0
    retries: list[str] = field(default_factory=list)
    """Each as JSON, the newest last."""
    unsettled: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unknown_calls: list[str] = field(default_factory=list)
    waiting_calls: list[str] = field(default_factory=list)

    @property
    def is_anything_unknown(self) -> bool:
        return bool(self.unknown or self.unknown_calls)


def get_status(session_id: str, *, now: datetime) -> Status:
    """One session's status; a fixed number of statements, whatever the session holds.

    Raises SessionNotFound when there is no such session (any more).
    """
    status = statuses([session_id], now=now).get(session_id)
    if status is None:
        raise SessionNotFound(session_id)
    return status


def statuses(ids: Sequence[str], *, now: datetime) -> dict[str, Status]:
    """The status of each session there is, by id; a fixed number of statements, however many they are.

    The inbox is read before the session row. The other way round, a session that is taken in between
    would look idle: not owned yet, and nothing pending any more.
    """
    found = _look(ids)
    rows = statements.fetch_related(Session, "owner", ids)
    owners = {row.owner_id: row.owner for row in rows if row.owner is not None}
    lives = {pk: _look_at(worker, now=now) for pk, worker in (owners | _recoverers(rows)).items()}
    policies = _policies({row.agent for row in rows if found[row.pk].is_anything_unknown})
    return {
        row.pk: _status(
            row,
            found[row.pk],
            owner=lives.get(row.owner_id, _NOBODY),
            is_being_recovered=lives.get(row.recovering_id, _NOBODY).is_alive,
            of_agent=policies.get(row.agent, ""),
        )
        for row in rows
    }


@dataclass(frozen=True, kw_only=True)
class _Owner:
    is_alive: bool
    quiet_since: datetime | None = None


_NOBODY: Final = _Owner(is_alive=False)


def _recoverers(rows: Sequence[Session]) -> dict[str | None, Worker]:
    """Of sessions that were parked before they were settled; of others it says nothing."""
    ids = {row.recovering_id for row in rows if row.parked and row.owner_id is not None}
    ids.discard(None)
    found = statements.fetch(Worker, {"pk__in": tuple(ids)}) if ids else []
    return {worker.pk: worker for worker in found}


def _look_at(owner: Worker, *, now: datetime) -> _Owner:
    """Once for each worker, however many sessions it has: it looks at a lock."""
    is_alive = not ownership.prove_death(owner, now=now)
    return _Owner(is_alive=is_alive, quiet_since=ownership.quiet_since(owner, now=now) if is_alive else None)


def _policies(agent_names: Collection[str]) -> dict[str, str]:
    if not agent_names:
        return {}
    rows = statements.fetch_columns(Agent, ("name", "recovery_policy"), {"pk__in": tuple(agent_names)})
    return {row.name: row.recovery_policy for row in rows}


def _look(ids: Sequence[str]) -> dict[str, _Found]:
    found: dict[str, _Found] = defaultdict(_Found)
    for session_id, delivery, count, newest in statements.rows_of(_pending, ids):
        entry = found[session_id]
        if delivery == "steer":
            entry.steer = count
        else:
            entry.queue = count
        entry.newest_wanting_wake = max(entry.newest_wanting_wake, newest or 0)
    for session_id, what, where, _, _ in sorted(statements.rows_of(_open, ids), key=lambda row: row[3:]):
        getattr(found[session_id], where).append(what)
    return found


def _pending(ids: Sequence[str]) -> "QuerySet[SessionInput, Any]":
    return (
        SessionInput.objects.filter(session_id__in=ids, promoted_seq=None, withdrawn_seq=None)
        .values_list("session_id", "delivery")
        .annotate(count=Count("pk"), newest=Max("admitted_seq", filter=Q(wake=True)))
    )


def _open(ids: Sequence[str]) -> "QuerySet[ProviderAttempt, Any]":
    """Attempts and calls that are unsettled, unknown or wait for a person, and retries that wait for their time:
    one statement over all three tables."""
    open_or_unknown = Q(settled_at=None, unknown_at=None) | Q(unknown_at__isnull=False, decided_at=None)
    waiting_or_unknown = Q(ended_at=None, approval="waiting") | Q(unknown_at__isnull=False, decided_at=None)
    attempts = ProviderAttempt.objects.filter(
        open_or_unknown, session_id__in=ids, purpose="step"
    ).values_list(
        "session_id",
        "pk",
        Case(
            When(state="unknown", then=Value("unknown")), default=Value("unsettled"), output_field=CharField()
        ),
        F("prepared_at"),
        Value(0, output_field=IntegerField()),
    )
    calls = MessagePart.objects.filter(waiting_or_unknown, session_id__in=ids).values_list(
        "session_id",
        "pk",
        Case(
            When(ended_at=None, then=Value("waiting_calls")),
            default=Value("unknown_calls"),
            output_field=CharField(),
        ),
        F("started_at"),
        F("index"),
    )
    retries = SessionMessage.objects.filter(
        session_id__in=ids, completed_at=None, retry__isnull=False
    ).values_list(
        "session_id",
        Cast("retry", TextField()),
        Value("retries", output_field=CharField()),
        F("created_at"),
        F("seq"),
    )
    return attempts.order_by().union(calls.order_by(), retries.order_by(), all=True)


def _status(
    session: Session, found: _Found, *, owner: _Owner, is_being_recovered: bool, of_agent: str
) -> Status:
    retry = Retry.model_validate_json(found.retries[-1]) if found.retries else None
    # Under ``off`` what is unknown is only shown; else it is left to people once nobody else is asked.
    asks = agents.recovery_policy(session, of_agent) != "off" and not session.inquiry
    facts = Facts(
        owned=session.owner_id is not None,
        owner_alive=owner.is_alive,
        retry=owner.is_alive and retry is not None,
        waiting=bool(found.waiting_calls),
        parked=session.parked,
        recovering=is_being_recovered,
        undecided=asks and found.is_anything_unknown,
        due=session.owed_at is not None or found.newest_wanting_wake > (session.hold_seq or 0),
    )
    return Status(
        state=derive(facts),
        session=session.pk,
        head_seq=session.head_seq,
        owner_alive=owner.is_alive,
        owner_quiet_since=None if owner.quiet_since is None else rfc3339(owner.quiet_since),
        pending=Pending(steer=found.steer, queue=found.queue),
        paused=session.hold_reason == "paused",
        parked=session.parked,
        attempt=found.unsettled[-1] if found.unsettled else None,
        retry=retry,
        unknown=Unknown(attempts=tuple(found.unknown), tools=tuple(found.unknown_calls)),
        waiting=tuple(found.waiting_calls),
    )
