"""Who may write execution facts: workers, lock files, heartbeats, fences, and how death is established."""

from sessions_app.ownership.deaths import (
    Watch,
    is_alive,
    looks_dead,
    presumed_alive,
    prove_death,
    quiet_since,
)
from sessions_app.ownership.ownership import (
    Refusal,
    answerable_calls,
    give_up,
    has_undecided,
    has_unsettled_work,
    is_orphan,
    open_parts,
    owned_sessions,
    release,
    take,
    verify,
)
from sessions_app.ownership.prune import prune
from sessions_app.ownership.workers import Registration, register

__all__ = [
    "Refusal",
    "Registration",
    "Watch",
    "answerable_calls",
    "give_up",
    "has_undecided",
    "has_unsettled_work",
    "is_alive",
    "is_orphan",
    "looks_dead",
    "open_parts",
    "owned_sessions",
    "presumed_alive",
    "prove_death",
    "prune",
    "quiet_since",
    "register",
    "release",
    "take",
    "verify",
]
