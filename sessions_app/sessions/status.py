"""Status, derived from durable facts and the owner's liveness, never from a process's memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, F, IntegerField, Max, OuterRef, Q, Subquery, Value, When

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
)


@dataclass
class _Found:
    steer: int = 0
    queue: int = 0
    newest_wanting_wake: int = 0
    unsettled: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unknown_calls: list[str] = field(default_factory=list)
    waiting_calls: list[str] = field(default_factory=list)


def get_status(session: Session, *, now: datetime) -> Status:
    """One session's status; a fixed number of statements, whatever the session holds.

    Raises SessionNotFound when it was deleted meanwhile.
    """
    status = statuses([session], now=now).get(session.pk)
    if status is None:
        raise SessionNotFound(session.pk)
    return status


def statuses(sessions: Sequence[Session], *, now: datetime) -> dict[str, Status]:
    """The status of each, by id, without those deleted meanwhile; a fixed number of statements.

    The inbox is read before the session row. The other way round, a session that is taken in between
    would look idle: not owned yet, and nothing pending any more.
    """
    ids = [session.pk for session in sessions]
    found = _look(ids)
    of_agent = Agent.objects.filter(pk=OuterRef("agent")).values("recovery_policy")
    unfinished = SessionMessage.objects.filter(session_id=OuterRef("pk"), completed_at=None)
    rows = (
        Session.objects.select_related("owner")
        .annotate(
            agent_policy=Subquery(of_agent),
            open_retry=Subquery(unfinished.order_by("-seq").values("retry")[:1]),
        )
        .in_bulk(ids)
    )
    return {pk: _status(row, found[pk], now=now) for pk, row in rows.items()}


def _asks(session: Any) -> bool:
    """Whether what is unknown is left to people, once nobody else is asked; under ``off`` it is only shown."""
    return agents.recovery_policy(session, session.agent_policy or "") != "off"


def _look(ids: Sequence[str]) -> dict[str, _Found]:
    found: dict[str, _Found] = defaultdict(_Found)
    pending = (
        SessionInput.objects.filter(session_id__in=ids, promoted_seq=None, withdrawn_seq=None)
        .values("session_id", "delivery")
        .annotate(count=Count("pk"), newest=Max("admitted_seq", filter=Q(wake=True)))
    )
    for row in pending:
        entry = found[row["session_id"]]
        if row["delivery"] == "steer":
            entry.steer = row["count"]
        else:
            entry.queue = row["count"]
        entry.newest_wanting_wake = max(entry.newest_wanting_wake, row["newest"] or 0)
    _look_at_what_is_open(ids, found)
    return found


def _look_at_what_is_open(ids: Sequence[str], found: dict[str, _Found]) -> None:
    """Attempts and calls that are unsettled, unknown or wait for a person: one statement over both tables."""
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
    rows = attempts.order_by().union(calls.order_by(), all=True)
    for session_id, pk, where, _, _ in sorted(rows, key=lambda row: row[3:]):
        getattr(found[session_id], where).append(pk)


def _status(session: Any, found: _Found, *, now: datetime) -> Status:
    retry = None if session.open_retry is None else Retry.model_validate(session.open_retry)
    owner_alive = session.owner is not None and not ownership.prove_death(session.owner, now=now)
    facts = Facts(
        owned=session.owner_id is not None,
        owner_alive=owner_alive,
        retry=owner_alive and retry is not None,
        waiting=bool(found.waiting_calls),
        parked=session.parked,
        undecided=_asks(session) and not session.inquiry and bool(found.unknown or found.unknown_calls),
        due=session.owed_at is not None or found.newest_wanting_wake > (session.hold_seq or 0),
    )
    return Status(
        state=derive(facts),
        session=session.pk,
        head_seq=session.head_seq,
        owner_alive=owner_alive,
        owner_quiet_since=_quiet_since(session.owner, now=now) if owner_alive else None,
        pending=Pending(steer=found.steer, queue=found.queue),
        paused=session.hold_reason == "paused",
        parked=session.parked,
        attempt=found.unsettled[-1] if found.unsettled else None,
        retry=retry,
        unknown=Unknown(attempts=tuple(found.unknown), tools=tuple(found.unknown_calls)),
        waiting=tuple(found.waiting_calls),
    )


def _quiet_since(owner: Worker, *, now: datetime) -> str | None:
    since = ownership.quiet_since(owner, now=now)
    return None if since is None else since.isoformat().replace("+00:00", "Z")
