"""What this process counted and has not stored yet. Callable from any thread; never blocks, never fails."""

import os
import threading
from bisect import bisect_left
from collections import Counter
from typing import Final

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds in seconds; what is longer is counted in a last bucket without bound."""

SUM: Final = "sum"

Totals = dict[str, float]

_lock = threading.Lock()
_counted: Counter[str] = Counter()


def count(name: str, label: str = "") -> None:
    """One more of ``name``, of the kind ``label``."""
    with _lock:
        _counted[key(name, label)] += 1


def observe(name: str, seconds: float) -> None:
    """One more duration. One that is negative was measured by two clocks that disagree, and counts as none."""
    seconds = max(0.0, seconds)
    place = bisect_left(BUCKETS, seconds)
    with _lock:
        _counted[key(name, str(place))] += 1
        _counted[key(name, SUM)] += seconds  # type: ignore[assignment]  # a Counter adds up any number


def take() -> Totals:
    """What was counted since the last call; from now on it is the caller's to keep."""
    global _counted
    with _lock:
        taken, _counted = _counted, Counter()
    return dict(taken)


def put_back(totals: Totals) -> None:
    """What was taken could not be stored."""
    with _lock:
        _counted.update(totals)


def key(name: str, label: str) -> str:
    return f"{name}/{label}"


def _forget() -> None:
    """A fork's parent stores what it counted before; the lock may have been held by one of its threads."""
    global _counted, _lock
    _counted, _lock = Counter(), threading.Lock()


os.register_at_fork(after_in_child=_forget)
