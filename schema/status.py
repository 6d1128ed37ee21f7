"""What a session is doing, derived from durable facts and the owner's liveness."""

from dataclasses import dataclass
from typing import Literal

from schema.base import Contract

State = Literal["orphaned", "retrying", "busy", "waiting", "needs_decision", "queued", "idle"]

SETTLED_STATES: frozenset[State] = frozenset({"orphaned", "waiting", "needs_decision", "idle"})
"""States in which nothing runs and nothing is about to."""


class Pending(Contract):
    steer: int
    queue: int


class Retry(Contract):
    attempt: int
    at: str
    reason: str


class Unknown(Contract):
    attempts: tuple[str, ...]
    tools: tuple[str, ...]


class Status(Contract):
    """A session's status as callers see it (contract section 3, Status)."""

    state: State
    session: str
    head_seq: int
    owner_alive: bool
    owner_quiet_since: str | None
    """Its last heartbeat, where the owner has missed two: it may be frozen, or out of reach."""
    pending: Pending
    paused: bool
    parked: bool
    attempt: str | None
    retry: Retry | None
    unknown: Unknown
    waiting: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the state is derived from."""

    owned: bool
    owner_alive: bool
    retry: bool
    waiting: bool
    parked: bool
    recovering: bool
    """A living worker is about to settle what a lost owner left."""
    undecided: bool
    due: bool
    """Something will run by itself: a run is owed, or an unheld pending input wants a wake."""


def derive(facts: Facts) -> State:
    """The first state that holds, in the order of the contract.

    A session that was parked since it kills whoever recovers it still has its dead owner, and is no orphan to
    wait for: nobody settles it before a person wants it to run again.
    """
    if facts.owned and not facts.owner_alive:
        if facts.recovering or not facts.parked:
            return "orphaned"
    elif facts.retry or facts.owned:
        return "retrying" if facts.retry else "busy"
    if facts.waiting:
        return "waiting"
    if facts.parked or facts.undecided:
        return "needs_decision"
    return "queued" if facts.due else "idle"
