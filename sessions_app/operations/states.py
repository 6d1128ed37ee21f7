"""How many of what there are now. Each count walks an index that holds little more than what is counted."""

from collections.abc import Callable
from typing import Final

from sessions_app.live import wakes
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionInput, Worker
from sessions_app.sessions.orphans import has_dead_owner, is_given_up


def live_drains() -> int:
    return Session.objects.filter(
        owner__isnull=False, owner__stopped_at__isnull=True, owner__dead_at__isnull=True
    ).count()


def orphans() -> int:
    """Without those that nobody will recover before a person acts."""
    return Session.objects.filter(has_dead_owner() & ~is_given_up()).count()


def live_workers() -> int:
    return Worker.objects.filter(kind="worker", stopped_at__isnull=True, dead_at__isnull=True).count()


def runs_owed() -> int:
    return Session.objects.filter(owed_at__isnull=False).count()


def pending_prompts() -> int:
    return SessionInput.objects.filter(promoted_seq__isnull=True, withdrawn_seq__isnull=True).count()


def attempts_in_flight() -> int:
    return ProviderAttempt.objects.filter(settled_at__isnull=True, unknown_at__isnull=True).count()


def undecided_attempts() -> int:
    return ProviderAttempt.objects.filter(unknown_at__isnull=False, decided_at__isnull=True).count()


def undecided_calls() -> int:
    return MessagePart.objects.filter(unknown_at__isnull=False, decided_at__isnull=True).count()


def waiting_calls() -> int:
    return MessagePart.objects.filter(ended_at__isnull=True, approval="waiting").count()


GAUGES: Final[tuple[tuple[str, str, Callable[[], int]], ...]] = (
    ("queue_depth", "Wakes in the queue.", wakes.depth),
    ("workers", "Workers that are not known to have ended.", live_workers),
    ("live_drains", "Sessions that a worker drains.", live_drains),
    ("orphaned_sessions", "Sessions whose worker is dead and that nobody has recovered yet.", orphans),
    ("runs_owed", "Sessions that are owed a run.", runs_owed),
    ("prompts_pending", "Prompts that were admitted and neither promoted nor withdrawn.", pending_prompts),
    ("attempts_in_flight", "Requests to providers that have not ended.", attempts_in_flight),
    (
        "attempts_undecided",
        "Attempts with an unknown outcome that nobody has decided on.",
        undecided_attempts,
    ),
    ("tool_calls_undecided", "Tool calls with an unknown outcome that nobody decided on.", undecided_calls),
    ("tool_calls_waiting", "Tool calls that wait for a person's approval.", waiting_calls),
)
