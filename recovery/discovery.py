"""Finding what waits for somebody, at a cost proportional to what is found."""

from datetime import datetime

from django.db.models import F, Q

from recovery.recover import Discovered
from sessions_app import ownership
from sessions_app.live import wakes
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionInput, SessionMessage
from sessions_app.sessions import orphans


def find_orphans(*, now: datetime) -> list[Discovered]:
    """Sessions whose owner is dead, and unsettled work that nobody owns. Parked ones are left alone."""
    prove_deaths(now=now)
    return [*_owned_by(orphans.has_dead_owner()), *_unowned_unsettled()]


def look_for_orphans() -> list[Discovered]:
    """The same without establishing anything: nothing is written."""
    return [*_owned_by(orphans.looks_lost()), *_unowned_unsettled()]


def find_given_up() -> list[str]:
    """Sessions that were parked before they could be settled. Nobody tries again before a person acts."""
    found = [*_owned_by(orphans.looks_lost(), parked=True), *_unowned_unsettled(parked=True)]
    return [orphan.session_id for orphan in found]


def _owned_by(dead: Q, *, parked: bool = False) -> list[Discovered]:
    found = Session.objects.filter(dead, owner__isnull=False, parked=parked).order_by("pk")
    rows = list(found.values_list("pk", "owner_id", "fence"))
    entered = _with_entered_calls() if rows else {}
    return [
        Discovered(
            session_id=session_id,
            owner=owner_id,
            fence=fence,
            is_bystander=session_id not in entered and owner_id in entered.values(),
        )
        for session_id, owner_id, fence in rows
    ]


def _with_entered_calls() -> dict[str, str | None]:
    """The owned sessions in which a tool of ours is running, with their owners."""
    running = MessagePart.objects.filter(
        ended_at=None, state="running", hosted=False, session__owner__isnull=False, session__parked=False
    )
    return dict(running.values_list("session_id", "session__owner_id"))


def prove_deaths(*, now: datetime) -> None:
    """Look at the lock of every worker that owns something and is not known to have ended."""
    for worker in orphans.presumed_owners():
        ownership.prove_death(worker, now=now)


def find_undetermined() -> list[str]:
    """Sessions whose owner is neither proved nor assumed dead, and may be alive."""
    owned = Session.objects.filter(owner__isnull=False, owner__stopped_at=None, owner__dead_at=None)
    return list(owned.order_by("pk").values_list("pk", flat=True))


def _unowned_unsettled(*, parked: bool = False) -> list[Discovered]:
    attempts = ProviderAttempt.objects.filter(
        settled_at=None, unknown_at=None, session__owner=None
    ).values_list("session_id", flat=True)
    parts = ownership.open_parts().filter(session__owner=None).values_list("session_id", flat=True)
    messages = (
        SessionMessage.objects.filter(completed_at=None, session__owner=None)
        .exclude(pk__in=ownership.answerable_calls().values("message_id"))
        .values_list("session_id", flat=True)
    )
    ids = {*attempts, *parts, *messages}
    rows = (
        Session.objects.filter(pk__in=ids, owner=None, parked=parked)
        .order_by("pk")
        .values_list("pk", "fence")
    )
    return [Discovered(session_id=pk, owner=None, fence=fence) for pk, fence in rows]


def find_due(*, now: datetime, spent_before: datetime | None = None) -> list[str]:
    """Sessions that nobody owns although a run is owed by now or an unheld input wants a wake.

    They only need a wake. Those that got one lately, parked ones and those that wait for a person are
    left out. A wake from before ``spent_before`` spares none.
    """
    owed = Session.objects.filter(owner=None, parked=False, owed_at__lte=now)
    unheld = Q(session__hold_seq=None) | Q(admitted_seq__gt=F("session__hold_seq"))
    waiting = SessionInput.objects.filter(
        unheld,
        promoted_seq=None,
        withdrawn_seq=None,
        wake=True,
        session__owner=None,
        session__parked=False,
    ).exclude(
        session_id__in=MessagePart.objects.filter(ended_at=None, approval="waiting").values("session_id")
    )
    found = dict(owed.values_list("pk", "wake_enqueued_at"))
    found.update(waiting.values_list("session_id", "session__wake_enqueued_at"))
    return sorted(
        pk
        for pk, enqueued_at in found.items()
        if not is_on_its_way(enqueued_at, now=now, spent_before=spent_before)
    )


def is_on_its_way(enqueued_at: datetime | None, *, now: datetime, spent_before: datetime | None) -> bool:
    """Whether a wake enqueued at that time may still arrive; those from before ``spent_before`` will not."""
    if spent_before is not None and enqueued_at is not None and enqueued_at < spent_before:
        return False
    return wakes.is_fresh(enqueued_at, now=now)
