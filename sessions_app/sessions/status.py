"""Status, derived from durable facts and the owner's liveness, never from a process's memory."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Max, Q

from schema.problems import SessionNotFound
from schema.status import Facts, Pending, Retry, Status, Unknown, derive
from sessions_app import agents, ownership
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionInput, SessionMessage


@dataclass
class _Found:
    steer: int = 0
    queue: int = 0
    newest_wanting_wake: int = 0
    unsettled: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unknown_calls: list[str] = field(default_factory=list)
    waiting_calls: list[str] = field(default_factory=list)
    retry: Retry | None = None


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
    rows = Session.objects.select_related("owner").in_bulk(ids)
    policies = agents.recovery_policies()
    return {pk: _status(row, found[pk], asks=_asks(row, policies), now=now) for pk, row in rows.items()}


def _asks(session: Session, policies: Mapping[str, str]) -> bool:
    """Whether what is unknown is left to people; with the policy ``off`` it is only shown."""
    return agents.recovery_policy(session, policies.get(session.agent, "")) != "off"


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
    open_or_unknown = Q(settled_at=None, unknown_at=None) | Q(unknown_at__isnull=False, decided_at=None)
    attempts = ProviderAttempt.objects.filter(open_or_unknown, session_id__in=ids, purpose="step")
    for session_id, attempt_id, state in attempts.order_by("prepared_at").values_list(
        "session_id", "pk", "state"
    ):
        entry = found[session_id]
        (entry.unknown if state == "unknown" else entry.unsettled).append(attempt_id)
    _look_at_calls(ids, found)
    _look_at_retries(ids, found)
    return found


def _look_at_calls(ids: Sequence[str], found: dict[str, _Found]) -> None:
    waiting_or_unknown = Q(ended_at=None, approval="waiting") | Q(unknown_at__isnull=False, decided_at=None)
    calls = MessagePart.objects.filter(waiting_or_unknown, session_id__in=ids).order_by("started_at", "index")
    for session_id, part_id, ended_at in calls.values_list("session_id", "pk", "ended_at"):
        entry = found[session_id]
        (entry.waiting_calls if ended_at is None else entry.unknown_calls).append(part_id)


def _look_at_retries(ids: Sequence[str], found: dict[str, _Found]) -> None:
    messages = SessionMessage.objects.filter(session_id__in=ids, completed_at=None)
    for session_id, retry in messages.values_list("session_id", "retry"):
        if retry is not None:
            found[session_id].retry = Retry.model_validate(retry)


def _status(session: Session, found: _Found, *, asks: bool, now: datetime) -> Status:
    owner_alive = session.owner is not None and not ownership.prove_death(session.owner, now=now)
    facts = Facts(
        owned=session.owner_id is not None,
        owner_alive=owner_alive,
        retry=owner_alive and found.retry is not None,
        waiting=bool(found.waiting_calls),
        parked=session.parked,
        undecided=asks and bool(found.unknown or found.unknown_calls),
        due=session.owed_at is not None or found.newest_wanting_wake > (session.hold_seq or 0),
    )
    return Status(
        state=derive(facts),
        session=session.pk,
        head_seq=session.head_seq,
        owner_alive=owner_alive,
        pending=Pending(steer=found.steer, queue=found.queue),
        paused=session.hold_reason == "paused",
        parked=session.parked,
        attempt=found.unsettled[-1] if found.unsettled else None,
        retry=found.retry,
        unknown=Unknown(attempts=tuple(found.unknown), tools=tuple(found.unknown_calls)),
        waiting=tuple(found.waiting_calls),
    )
