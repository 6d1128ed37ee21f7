"""Where the core calls what is built on top of it, without knowing it.

Each hook has a default that is safe when nothing is registered: nothing is repeated, what is unknown is
left to people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sessions_app.log import SessionTransaction

OrphanFound = Callable[[str, str], None]
Sweep = Callable[[datetime, str], None]


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """An outcome that became unknown while its process lives.

    ``source`` names what the continuation's id is derived from: the attempt, or the message whose calls
    were cut.
    """

    source: str
    message_id: str
    is_shutdown: bool = False
    """Cut by a shutdown, which is no crash: no budget is spent."""
    can_be_asked: bool = False
    """The source is an attempt whose provider can be asked what became of it, and was not asked yet."""
    is_counted: bool = False
    """The budget was spent on it before: it was unknown already, and its provider could not tell."""


OutcomeUnknown = Callable[[SessionTransaction, Unknown], None]

_orphan_found: Final[list[OrphanFound]] = []
_sweeps: Final[list[Sweep]] = []
_outcome_unknown: Final[list[OutcomeUnknown]] = []


def register(
    *,
    orphan_found: OrphanFound | None = None,
    sweep: Sweep | None = None,
    outcome_unknown: OutcomeUnknown | None = None,
) -> None:
    """Register what recovery does. Registering the same function again changes nothing."""
    for hook, registered in (
        (orphan_found, _orphan_found),
        (sweep, _sweeps),
        (outcome_unknown, _outcome_unknown),
    ):
        if hook is not None and hook not in registered:
            registered.append(hook)  # type: ignore[arg-type]


def orphan_found(session_id: str, worker_id: str) -> None:
    """A session has unsettled work and nobody alive who owns it; the worker that found it asks."""
    for hook in _orphan_found:
        hook(session_id, worker_id)


def sweep(now: datetime, worker_id: str) -> None:
    """The periodic look of a worker at what waits for somebody."""
    for hook in _sweeps:
        hook(now, worker_id)


def outcome_unknown(tx: SessionTransaction, unknown: Unknown) -> bool:
    """Let policy decide, in the transaction that fails the step. False when nothing decides here."""
    for hook in _outcome_unknown:
        hook(tx, unknown)
    return bool(_outcome_unknown)
