"""Sessions whose owner is dead: those that are waited for, and those that nobody recovers any more."""

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q

from sessions_app import ownership
from sessions_app.models import Session

if TYPE_CHECKING:
    from django.db.models import QuerySet


def orphaned(rows: "QuerySet[Session]") -> "QuerySet[Session]":
    """The sessions whose state is ``orphaned``: the owner ended, or its lock proves that it did, and somebody
    will recover what it left. Nothing is written."""
    owners = Session.objects.filter(owner__isnull=False).order_by().values("owner").distinct()
    provable = [
        worker.pk
        for worker in ownership.presumed_alive().filter(pk__in=owners)
        if ownership.looks_dead(worker)
    ]
    is_lost = Q(owner__isnull=False) & (_has_dead_owner() | Q(owner__in=provable))
    return rows.filter(is_lost & (Q(parked=False) | _is_being_recovered()))


def is_given_up() -> Q:
    """Sessions that were parked before they could be settled: nobody recovers them before a person acts.

    Whoever parked them knew that their owner is dead, so that no lock needs to be looked at.
    """
    return Q(parked=True) & _has_dead_owner() & ~_is_being_recovered()


def _has_dead_owner() -> Q:
    return Q(owner__stopped_at__isnull=False) | Q(owner__dead_at__isnull=False)


def _is_being_recovered() -> Q:
    return Q(Exists(ownership.presumed_alive().filter(pk=OuterRef("recovering"))))
