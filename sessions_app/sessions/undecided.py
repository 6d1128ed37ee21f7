"""What waits for a person's decision."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from sessions_app.models import Agent, MessagePart, ProviderAttempt, Session
from sessions_app.models.fields import UNDECIDED
from sessions_app.models.messages import WAITING
from sessions_app.sessions.orphans import is_given_up

if TYPE_CHECKING:
    from django.db.models import QuerySet


def needing_decision(rows: "QuerySet[Session]", wanted: bool = True) -> "QuerySet[Session]":
    """The sessions whose state is ``needs_decision``, or all others.

    While a provider is to be asked first, nothing is left to people.
    """
    attempts = ProviderAttempt.objects.filter(UNDECIDED, session_id=OuterRef("pk"), purpose="step")
    calls = MessagePart.objects.filter(session_id=OuterRef("pk"))
    unknown = Q(inquiry="") & (Exists(attempts) | Exists(calls.filter(UNDECIDED)))
    unowned = Q(owner=None) & (Q(parked=True) | (_asks() & unknown))
    needs = ~Exists(calls.filter(WAITING)) & (unowned | is_given_up())
    return rows.filter(needs if wanted else ~needs)


def _asks() -> Q:
    """Sessions whose policy leaves what is unknown to people: their own, their agent's, the site's."""
    of_agent = Agent.objects.filter(pk=OuterRef("agent"))
    if settings.HOLDFAST_RECOVERY_POLICY == "off":
        by_agent = Q(Exists(of_agent.filter(recovery_policy__in=("continue", "ask"))))
    else:
        by_agent = ~Q(Exists(of_agent.filter(recovery_policy="off")))
    return ~Q(recovery_policy="off") & (~Q(recovery_policy="") | by_agent)


def undecided(rows: "QuerySet[ProviderAttempt]", wanted: bool = True) -> "QuerySet[ProviderAttempt]":
    """The attempts whose outcome is unknown and not decided, or all others."""
    needs = UNDECIDED & Q(purpose="step")
    return rows.filter(needs if wanted else ~needs)


def unknown_calls(rows: "QuerySet[MessagePart]") -> "QuerySet[MessagePart]":
    """The calls whose outcome is unknown and not decided."""
    return rows.filter(UNDECIDED)


def waiting_calls(rows: "QuerySet[MessagePart]") -> "QuerySet[MessagePart]":
    """The calls that wait for an approval."""
    return rows.filter(WAITING)


def undecided_calls(rows: "QuerySet[MessagePart]", wanted: bool = True) -> "QuerySet[MessagePart]":
    """The calls that wait for an approval or whose outcome is unknown and not decided, or all others."""
    needs = UNDECIDED | WAITING
    return rows.filter(needs if wanted else ~needs)
