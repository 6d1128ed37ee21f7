"""Runs calls at the same instant, each in a thread with a database connection of its own."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from django.db import connections

PATIENCE_SECONDS: Final = 60.0


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each call returned or raised; all begin at once."""
    with Racers(len(calls)) as racers:
        return racers.round(*calls)


class Racers:
    """Threads that keep their connections, for many rounds of calls that begin at once."""

    def __init__(self, count: int) -> None:
        self._pools = [ThreadPoolExecutor(1) for _ in range(count)]

    def __enter__(self) -> "Racers":
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.submit(connections.close_all)
            pool.shutdown(wait=True)

    def round(self, *calls: Callable[[], Any]) -> list[Any]:
        """What each call returned or raised, in the order of the calls."""
        barrier = threading.Barrier(len(calls), timeout=PATIENCE_SECONDS)
        futures = [pool.submit(_run, barrier, call) for pool, call in zip(self._pools, calls, strict=True)]
        return [_outcome(future) for future in futures]


def _run(barrier: threading.Barrier, call: Callable[[], Any]) -> Any:
    barrier.wait()
    return call()


def _outcome(future: "Future[Any]") -> Any:
    try:
        return future.result(timeout=PATIENCE_SECONDS)
    except Exception as raised:  # noqa: BLE001 - what was raised is the outcome
        return raised


def rounds(most: int, *, within: float) -> Iterator[int]:
    """Numbers of rounds, up to ``most`` or until the time is over, whichever comes first.

    ``make races`` asks for many times as much of both.
    """
    times = float(os.environ.get("HOLDFAST_TEST_RACES", "1"))
    deadline = time.monotonic() + within * times
    made = 0
    for number in range(int(most * times)):
        if time.monotonic() > deadline:
            break
        yield number
        made += 1
    print(f"rounds: {made}")
