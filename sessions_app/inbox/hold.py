"""Holding back what is pending: paused, undecided, or a staged revert."""

from typing import Literal

from schema.events import RevertCleared, RevertCommitted, RevertStaged, SessionPaused, SessionUnpaused
from sessions_app.inbox.pending import has_pending
from sessions_app.log import SessionTransaction


def pause(tx: SessionTransaction, *, up_to: int, by: Literal["user", "recovery"] = "user") -> None:
    """What was pending up to that seq waits for a prompt or a resume."""
    tx.set(hold_seq=up_to, hold_reason="paused")
    tx.append(SessionPaused(reason=by))


def hold_undecided(tx: SessionTransaction) -> None:
    """What is pending now waits until the unknown outcome is decided, or a newer prompt goes past it.

    A pause stays a pause: what a person held, a decision does not let go.
    """
    if tx.session.hold_reason != "paused" and has_pending(tx.session.pk, up_to=tx.head_seq):
        tx.set(hold_seq=tx.head_seq, hold_reason="undecided")


def lift(tx: SessionTransaction, *, because: Literal["prompt", "resume"]) -> None:
    """Let go what is held, if anything is."""
    if tx.session.hold_seq is None:
        return
    if tx.session.hold_reason == "paused":
        tx.append(SessionUnpaused(reason=because))
    tx.set(hold_seq=None, hold_reason="")


def stage_revert(tx: SessionTransaction, *, message_id: str) -> None:
    """Hide the transcript from that message on with the next prompt; until then nothing pending runs.

    What held the session before keeps its reason: it holds on when the revert is cleared.
    """
    tx.append(RevertStaged(message=message_id))
    if has_pending(tx.session.pk, up_to=tx.head_seq):
        tx.set(hold_seq=tx.head_seq, hold_reason=tx.session.hold_reason or "revert")


def clear_revert(tx: SessionTransaction) -> None:
    """Take a staged revert back; what only it held may go."""
    tx.append(RevertCleared(message=tx.session.staged_revert))
    if tx.session.hold_reason == "revert":
        tx.set(hold_seq=None, hold_reason="")


def commit_revert(tx: SessionTransaction) -> None:
    """Hide what was staged, if anything was. Pending inputs stay pending."""
    if tx.session.staged_revert:
        tx.append(RevertCommitted(message=tx.session.staged_revert))


def unpark(tx: SessionTransaction) -> None:
    """A person wants the session to run again: its recoveries count anew.

    One whose work is unsettled still names its dead owner: whoever settles it is told not to ask again.
    """
    if tx.session.parked:
        tx.set(parked=False, recovery_count=0, interrupt_resume=tx.session.owner_id is not None)
