"""Recovering one orphan: counted, claimed, settled, handed back to the normal path."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError

from recovery import plan, settle, snapshot
from recovery.models import RecoveryClaim
from schema.events import RecoveryClaimed, RecoveryFound
from sessions_app import identity, inbox, ownership
from sessions_app.live import wakes
from sessions_app.log import SessionGone, SessionTransaction, session_transaction
from sessions_app.models import Session, SessionMessage, Worker

logger = logging.getLogger(__name__)

ClaimOutcome = Literal["continued", "resumed", "held", "parked", "closed"]
Death = Literal["proved", "assumed", "own", "none"]
Outcome = Literal["claimed", "lost", "alive", "undetermined", "failed"]


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """An orphan as it was discovered. ``owner`` is None for unsettled work that nobody owns."""

    session_id: str
    owner: str | None
    fence: int
    is_bystander: bool = False
    """No call of it was entered when its owner was lost, but one of another session was."""


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """What became of one discovered orphan."""

    session_id: str
    outcome: Outcome
    claim: RecoveryClaim | None = None
    detail: str = ""


class _NotOurs(Exception):
    """Somebody else was faster, or the owner lives: nothing was written."""


def recover(
    orphan: Discovered,
    *,
    worker_id: str | None,
    now: datetime,
    override: plan.Policy | None = None,
) -> Recovered:
    """Recover one orphan, if it still is one.

    However many processes do this at once or crash in it, one loss of an owner gets one claim and at
    most one continuation; a crash anywhere leaves nothing or all of it. Errors are reported, not raised,
    so that one session does not stop the others; a database that is away does raise.
    """
    try:
        is_over_budget = _count(orphan, worker_id=worker_id, now=now)
        claim = _claim(orphan, worker_id=worker_id, now=now, is_over_budget=is_over_budget, override=override)
    except (_NotOurs, SessionGone):
        return Recovered(session_id=orphan.session_id, outcome="lost")
    except (OperationalError, InterfaceError):
        raise
    except Exception as broken:
        logger.exception("recovery.failed", extra={"session": orphan.session_id})
        _leave_to_others(orphan, worker_id=worker_id, now=now)
        return Recovered(session_id=orphan.session_id, outcome="failed", detail=str(broken))
    logger.info(
        "recovery.claimed",
        extra={"session": orphan.session_id, "claim": claim.pk, "outcome": claim.outcome},
    )
    return Recovered(session_id=orphan.session_id, outcome="claimed", claim=claim)


def _count(orphan: Discovered, *, worker_id: str | None, now: datetime) -> bool:
    """Count this recovery durably before anything is tried. True when the budget is used up.

    A session that kills whoever recovers it is parked here, before it can do so again.
    """
    with session_transaction(orphan.session_id, now=now) as tx:
        session = tx.session
        _require_orphan(tx, orphan, worker_id=worker_id)
        if session.parked:
            raise _NotOurs
        if _is_being_recovered(session, worker_id=worker_id, now=now):
            raise _NotOurs
        count = session.recovery_count + _weight(orphan, session, worker_id=worker_id)
        is_over_budget = count > settings.HOLDFAST_RECOVERY_BUDGET
        tx.set(recovery_count=count, recovering_id=worker_id)
        if is_over_budget:
            tx.set(parked=True)
            inbox.clear(tx)
        return is_over_budget


def _weight(orphan: Discovered, session: Session, *, worker_id: str | None) -> int:
    """A session that kills its worker by a tool must not use up the budgets of those beside it.

    Each loss still counts for whoever had a call entered, or for all, so that losses are bounded; and a
    recovery that nobody survived counts whatever else was lost. One that the same worker begins again,
    since the database went away in it, was counted when it began.
    """
    if worker_id is not None and session.recovering_id == worker_id:
        return 0
    is_spared = orphan.is_bystander and session.recovering_id is None and _losses(session) < _most_spared()
    return 0 if is_spared else 1


def _most_spared() -> int:
    """How often somebody else's tool may be blamed: a session can kill its worker without a tool, too."""
    return 3 * settings.HOLDFAST_RECOVERY_BUDGET


def _losses(session: Session) -> int:
    """How often the session lost its owner since a person last said something that was read."""
    said = SessionMessage.objects.filter(session_id=session.pk, type="user").order_by("-seq")
    since = said.values_list("seq", flat=True).first() or 0
    return RecoveryClaim.objects.filter(session_id=session.pk, boundary_seq__gt=since).count()


def _leave_to_others(orphan: Discovered, *, worker_id: str | None, now: datetime) -> None:
    """A recovery that failed is over: whoever looks next may try, and names the session too.

    A row that cannot be read cannot be given back either, and stops nobody else's.
    """
    try:
        with session_transaction(orphan.session_id, now=now) as tx:
            if tx.session.recovering_id == worker_id:
                tx.set(recovering_id=None)
    except (OperationalError, InterfaceError):
        raise
    except SessionGone:
        return
    except Exception:
        logger.exception("recovery.not_given_back", extra={"session": orphan.session_id})


def _is_being_recovered(session: Session, *, worker_id: str | None, now: datetime) -> bool:
    if session.recovering_id is None or session.recovering_id == worker_id:
        return False
    recoverer = Worker.objects.filter(pk=session.recovering_id).first()
    return recoverer is not None and not ownership.prove_death(recoverer, now=now)


def _require_orphan(tx: SessionTransaction, orphan: Discovered, *, worker_id: str | None) -> Death:
    """How it is known that nobody works on the session; raises when it is not as discovered any more."""
    session = tx.session
    if (session.owner_id, session.fence) != (orphan.owner, orphan.fence):
        raise _NotOurs
    if session.owner_id is None:
        if not ownership.has_unsettled_work(session.pk):
            raise _NotOurs
        return "none"
    if session.owner_id == worker_id:
        return "own"
    owner = Worker.objects.get(pk=session.owner_id)
    if not ownership.prove_death(owner, now=tx.now):
        raise _NotOurs
    return "assumed" if owner.death == "assumed" else "proved"


def _claim(
    orphan: Discovered,
    *,
    worker_id: str | None,
    now: datetime,
    is_over_budget: bool,
    override: plan.Policy | None,
) -> RecoveryClaim:
    with session_transaction(orphan.session_id, now=now) as tx:
        death = _require_orphan(tx, orphan, worker_id=worker_id)
        made = plan.make(snapshot.take(tx.session, is_over_budget=is_over_budget, override=override))
        claim = _store(tx, orphan, made, worker_id=worker_id, death=death)
        settle.settle(tx, made)
        settle.go_on(tx, made, continuation_id=claim.continuation)
        tx.set(interrupt_fence=None, interrupt_seq=None, interrupt_resume=False, wake_enqueued_at=None)
        if not tx.session.parked and inbox.is_due(tx.session, now=now):
            wakes.enqueue(tx)
        return claim


def _store(
    tx: SessionTransaction, orphan: Discovered, made: plan.Plan, *, worker_id: str | None, death: Death
) -> RecoveryClaim:
    """Insert the claim, say so in the log, take the fence: from here on the dead owner writes nothing."""
    claim_id = identity.new_claim_id()
    outcome = outcome_of(tx.session, made, now=tx.now)
    continuation = continuation_id(claim_id) if made.admits_continuation else ""
    try:
        claim = RecoveryClaim.objects.create(
            id=claim_id,
            session_id=tx.session.pk,
            boundary_seq=tx.head_seq,
            lost_fence=orphan.fence,
            lost_owner=orphan.owner or "",
            worker=worker_id or "",
            death=death,
            outcome=outcome,
            found=made.found,
            continuation=continuation,
            created_at=tx.now,
        )
    except IntegrityError as taken:
        logger.info("recovery.claim.lost", extra={"session": orphan.session_id})
        raise _NotOurs from taken
    tx.append(
        RecoveryClaimed(
            claim=claim_id,
            worker=worker_id,
            boundary=claim.boundary_seq,
            lost_fence=orphan.fence,
            lost_owner=orphan.owner,
            death=death,
            outcome=outcome,
            found=RecoveryFound.model_validate(made.found),
            continuation=continuation or None,
        )
    )
    tx.set(owner_id=None, fence=orphan.fence + 1, recovering_id=None)
    return claim


def outcome_of(session: Session, made: plan.Plan, *, now: datetime) -> ClaimOutcome:
    """The claim's outcome in one word."""
    match made.go_on:
        case "continue":
            return "continued"
        case "owe" | "inquire":
            return "resumed"
        case "park":
            return "parked"
        case "ask" | "paused":
            return "held"
        case "off":
            return "closed"
    return "resumed" if inbox.is_due(session, now=now) else "closed"


def foresee(orphan: Discovered, *, now: datetime, override: plan.Policy | None) -> RecoveryClaim | None:
    """The claim that ``recover`` would store now, unsaved. None when the session is gone."""
    session = Session.objects.filter(pk=orphan.session_id).first()
    if session is None:
        return None
    count = session.recovery_count + _weight(orphan, session, worker_id=None)
    is_over_budget = count > settings.HOLDFAST_RECOVERY_BUDGET
    made = plan.make(snapshot.take(session, is_over_budget=is_over_budget, override=override))
    return RecoveryClaim(
        id="",
        session_id=session.pk,
        boundary_seq=session.head_seq,
        lost_fence=orphan.fence,
        lost_owner=orphan.owner or "",
        outcome=outcome_of(session, made, now=now),
        found=made.found,
        created_at=now,
    )


def continuation_id(source: str) -> str:
    """The id of the one continuation that belongs to a claim or an attempt."""
    return f"msg_rec-{source.partition('_')[2]}"
