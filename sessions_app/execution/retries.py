"""When a step is asked again by itself: only where nothing can have happened, bounded, not at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from schema.attempts import AttemptError

MOST_ATTEMPTS: Final = 5
"""Attempts of one step, the first included."""
FIRST_DELAY_SECONDS: Final = 2.0
JITTER: Final = 0.2
LONGEST_DELAY_SECONDS: Final = 15 * 60.0
"""A provider that asks to wait longer is not waited for: the step fails and says so."""

_TRANSIENT: Final = frozenset({"rate_limit", "overloaded"})


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The next attempt of an open message: which one it is, and when it may leave."""

    message_id: str
    ordinal: int
    at: datetime
    reason: str


def plan(error: AttemptError, *, message_id: str, ordinal: int, now: datetime, jitter: float) -> Retry | None:
    """The retry after attempt number ``ordinal``, or None: this error is not retried, or not any more.

    ``jitter`` is a number from -1 to 1. The wait doubles with each attempt; what the provider asked for
    counts if it is longer.
    """
    if not is_retried(error) or ordinal >= MOST_ATTEMPTS:
        return None
    backoff = FIRST_DELAY_SECONDS * 2 ** (ordinal - 1) * (1 + JITTER * jitter)
    seconds = max(backoff, error.retry_after or 0.0)
    if seconds > LONGEST_DELAY_SECONDS:
        return None
    return Retry(
        message_id=message_id,
        ordinal=ordinal + 1,
        at=now + timedelta(seconds=seconds),
        reason=error.message,
    )


def is_retried(error: AttemptError) -> bool:
    """Provably not sent for a reason that may pass, or refused before inference for lack of room."""
    if error.error_class == "not_sent":
        return error.reason not in ("configuration", "bad_request")
    return error.error_class == "rejected" and error.reason in _TRANSIENT
