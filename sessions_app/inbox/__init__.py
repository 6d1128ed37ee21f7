"""The inbox: admit, promote, withdraw, switch delivery, hold."""

from sessions_app.inbox.admit import Admission, admit, admit_own
from sessions_app.inbox.change import change_delivery, withdraw
from sessions_app.inbox.hold import (
    clear_revert,
    commit_revert,
    hold_undecided,
    lift,
    pause,
    stage_revert,
    unpark,
)
from sessions_app.inbox.owed import clear, owe, owe_inquiry
from sessions_app.inbox.pending import (
    has_pending,
    has_promotable,
    is_due,
    promotable,
    waits_for_a_person,
    want_wake,
    wants_wake,
)
from sessions_app.inbox.promote import promote, promote_steers

__all__ = [
    "Admission",
    "admit",
    "admit_own",
    "change_delivery",
    "clear",
    "clear_revert",
    "commit_revert",
    "has_pending",
    "has_promotable",
    "hold_undecided",
    "is_due",
    "lift",
    "owe",
    "owe_inquiry",
    "pause",
    "promotable",
    "promote",
    "promote_steers",
    "stage_revert",
    "unpark",
    "waits_for_a_person",
    "want_wake",
    "wants_wake",
    "withdraw",
]
