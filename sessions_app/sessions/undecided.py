"""What waits for a person's decision."""

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q

from sessions_app.models import ProviderAttempt, Session

if TYPE_CHECKING:
    from django.db.models import QuerySet

_UNDECIDED = Q(unknown_at__isnull=False, decided_at=None)


def needing_decision(rows: "QuerySet[Session]", wanted: bool = True) -> "QuerySet[Session]":
    """The sessions whose state is ``needs_decision``, or all others."""
    unknown = ProviderAttempt.objects.filter(_UNDECIDED, session_id=OuterRef("pk"), purpose="step")
    needs = Q(owner=None) & (Q(parked=True) | Exists(unknown))
    return rows.filter(needs if wanted else ~needs)


def undecided(rows: "QuerySet[ProviderAttempt]", wanted: bool = True) -> "QuerySet[ProviderAttempt]":
    """The attempts whose outcome is unknown and left to a person, or all others."""
    needs = _UNDECIDED & Q(purpose="step")
    return rows.filter(needs if wanted else ~needs)
