"""Sessions whose owner is dead: those that are waited for, and those that nobody recovers any more."""

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q

from sessions_app import ownership
from sessions_app.models import Session, Worker

if TYPE_CHECKING:
    from django.db.models import QuerySet


def orphaned(rows: "QuerySet[Session]") -> "QuerySet[Session]":
    """The sessions whose state is ``orphaned``: the owner ended, or its lock proves that it did, and somebody
    will recover what it left. Nothing is written."""
    return rows.filter(looks_lost() & (Q(parked=False) | _is_being_recovered()))


def looks_lost() -> Q:
    """Sessions whose owner ended, or whose owner's lock proves that it did."""
    provable = [worker.pk for worker in presumed_owners() if ownership.looks_dead(worker)]
    return has_dead_owner() | Q(owner__in=provable)


def presumed_owners() -> "QuerySet[Worker]":
    """The workers that own something and that nothing durable says ended."""
    owners = Session.objects.filter(owner__isnull=False).order_by().values("owner").distinct()
    return ownership.presumed_alive().filter(pk__in=owners)


def is_given_up() -> Q:
    """Sessions that were parked before they could be settled: nobody recovers them before a person acts.

    Whoever parked them knew that their owner is dead, so that no lock needs to be looked at.
    """
    return Q(parked=True) & has_dead_owner() & ~_is_being_recovered()


def has_dead_owner() -> Q:
    """Sessions whose owner is known to have ended; no lock is looked at."""
    return Q(owner__stopped_at__isnull=False) | Q(owner__dead_at__isnull=False)


def _is_being_recovered() -> Q:
    return Q(Exists(ownership.presumed_alive().filter(pk=OuterRef("recovering"))))
