"""Waits for a condition with a deadline, never for a time."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_LOOK_AGAIN_SECONDS: Final = 0.02


def until(condition: Callable[[], T], *, within: float = 30.0, what: str = "the condition") -> T:
    """The first true value of ``condition``; fails with ``what`` after ``within`` seconds."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not become true within {within:g} s (last: {value!r})")
        time.sleep(_LOOK_AGAIN_SECONDS)
    return value
