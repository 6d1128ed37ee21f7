"""Where the API's database work runs: a few threads that live long.

Django gives every request a thread of its own and a new connection with it, which costs more than an
admission. These threads keep their SQLite connection; a PostgreSQL connection goes back to the pool
after each unit, where other threads of the process wait for it.
"""

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")

_THREADS: Final = 4


def in_thread(unit: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """``unit`` as a coroutine function that blocks no event loop.

    Only a web process has the threads; elsewhere (tests) the unit runs in the caller's own thread and
    sees the caller's transaction.
    """
    if settings.HOLDFAST_ROLE != "web":
        return sync_to_async(unit, thread_sensitive=True)

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return unit(*args, **kwargs)
        finally:
            _hand_back()

    return sync_to_async(run, thread_sensitive=False, executor=_executor())


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="api")


def _hand_back() -> None:
    if connection.vendor != "sqlite" or connection.errors_occurred:
        connection.close()
