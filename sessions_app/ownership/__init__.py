"""Who may write execution facts: workers, lock files, heartbeats, fences, and how death is established."""

from sessions_app.ownership.deaths import Watch, is_alive, prove_death
from sessions_app.ownership.ownership import (
    Refusal,
    find_owned,
    has_unsettled_work,
    held_of,
    release,
    take,
)
from sessions_app.ownership.workers import Registration, register

__all__ = [
    "Refusal",
    "Registration",
    "Watch",
    "find_owned",
    "has_unsettled_work",
    "held_of",
    "is_alive",
    "prove_death",
    "register",
    "release",
    "take",
]
