"""How often one user, or one token, may ask: a count for each window of time, in the cache.

The cache is Redis where several web hosts share one, else the memory of the one web process. It is no reason to refuse
anybody when it is away.
"""

import logging
import time
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.core.cache import cache

from schema.limits import Rate
from schema.problems import Throttled
from sessions_app import figures
from sessions_app.live.bounded_log import BoundedLog

logger = logging.getLogger(__name__)

_away: Final = BoundedLog(logger, "rates.cache_away")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a caller stands in the current window."""

    limit: str
    allowed: int
    used: int
    resets_in: int
    """Seconds until the window ends."""

    @property
    def remaining(self) -> int:
        return max(0, self.allowed - self.used)

    @property
    def is_exhausted(self) -> bool:
        return self.used > self.allowed

    def require(self) -> None:
        """Raises Throttled, and counts that, when more came than is allowed."""
        if self.is_exhausted:
            figures.count(figures.THROTTLED, self.limit)
            raise Throttled(exhausted=self.limit, retry_after=self.resets_in)


def spend_as_user(user_id: int) -> Standing | None:
    """Count one request of the user, however it comes. None: there is no limit."""
    return _spend("user", user_id, settings.HOLDFAST_USER_RATE)


def spend_as_token(token_id: int) -> Standing | None:
    """Count one request with the token. None: there is no limit."""
    return _spend("token", token_id, settings.HOLDFAST_TOKEN_RATE)


def _spend(limit: str, who: int, rate: Rate | None) -> Standing | None:
    if rate is None:
        return None
    now = time.time()
    window = int(now // rate.seconds)
    used = _count(f"rate:{limit}:{who}:{window}", lasts=rate.seconds)
    resets_in = max(1, round((window + 1) * rate.seconds - now))
    return Standing(limit=limit, allowed=rate.requests, used=used, resets_in=resets_in)


def _count(key: str, *, lasts: int) -> int:
    """One more under the key; how many there are now. None are counted while the cache is away."""
    try:
        return _increased(key, lasts=lasts)
    except Exception as error:  # noqa: BLE001  (each cache fails in its own ways)
        _away.add(type(error).__name__)
        return 0


def _increased(key: str, *, lasts: int) -> int:
    try:
        return cache.incr(key)
    except ValueError:
        # Of two that are first, one adds, and the other finds what it added.
        return 1 if cache.add(key, 1, timeout=2 * lasts) else cache.incr(key)
