"""Sessions whose owner is dead."""

from typing import TYPE_CHECKING

from django.db.models import Q

from sessions_app import ownership
from sessions_app.models import Session

if TYPE_CHECKING:
    from django.db.models import QuerySet


def orphaned(rows: "QuerySet[Session]") -> "QuerySet[Session]":
    """The sessions whose owner ended, or whose owner's lock proves that it did; nothing is written."""
    owners = Session.objects.filter(owner__isnull=False).order_by().values("owner").distinct()
    provable = [
        worker.pk
        for worker in ownership.presumed_alive().filter(pk__in=owners)
        if ownership.looks_dead(worker)
    ]
    ended = Q(owner__stopped_at__isnull=False) | Q(owner__dead_at__isnull=False)
    return rows.filter(Q(owner__isnull=False) & (ended | Q(owner__in=provable)))
