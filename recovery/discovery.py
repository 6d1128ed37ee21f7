"""Finding what waits for somebody, at a cost proportional to what is found."""

from datetime import datetime

from django.db.models import F, Q

from sessions_app.live import wakes
from sessions_app.models import MessagePart, Session, SessionInput


def find_due(*, now: datetime) -> list[str]:
    """Sessions that nobody owns although a run is owed by now or an unheld input wants a wake.

    They only need a wake. Those that got one lately, and parked ones, are left out.
    """
    unowned = Q(owner=None, parked=False)
    owed = Session.objects.filter(unowned, owed_at__lte=now)
    unheld = Q(session__hold_seq=None) | Q(admitted_seq__gt=F("session__hold_seq"))
    waiting = SessionInput.objects.filter(
        unheld,
        promoted_seq=None,
        withdrawn_seq=None,
        wake=True,
        session__owner=None,
        session__parked=False,
    ).exclude(session__parts__in=MessagePart.objects.filter(ended_at=None, approval="waiting"))
    found = dict(owed.values_list("pk", "wake_enqueued_at"))
    found.update(waiting.values_list("session_id", "session__wake_enqueued_at"))
    return sorted(pk for pk, enqueued_at in found.items() if not wakes.is_fresh(enqueued_at, now=now))
