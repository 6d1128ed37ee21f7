"""Where the API's database work runs: a few threads that live long and keep their connections.

Django gives every request a thread of its own and a new connection with it, which costs more than an
admission.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, Final, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 4
"""Each keeps a connection: fewer than the pool holds, so that pages and sockets never wait for these."""

MOST_WAITING: Final = 16
"""Questions to providers and tools at a time; further ones queue up behind them."""

_TRUSTED_SECONDS: Final = 1.0


class _Used(threading.local):
    at = 0.0


_used: Final = _Used()


def in_thread(unit: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """``unit`` as a coroutine function that blocks no event loop.

    Only a web process has the threads; elsewhere (tests) the unit runs in the caller's own thread and
    sees the caller's transaction.
    """
    if settings.HOLDFAST_ROLE != "web":
        return sync_to_async(unit, thread_sensitive=True)
    return partial(_run, unit)


def aside(unit: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same for what waits for somebody else's answer: on threads that nobody else waits for, and that keep
    no connection."""
    if settings.HOLDFAST_ROLE != "web":
        return sync_to_async(unit, thread_sensitive=True)
    return partial(_run_aside, unit)


async def _run(unit: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As asgiref does it, without the wrapper that it makes anew for every function."""
    work = partial(copy_context().run, _use_connection, partial(unit, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_executor(), work)


async def _run_aside(unit: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    work = partial(copy_context().run, _close_connection_after, partial(unit, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_waiting(), work)


def _close_connection_after(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        connection.close()


def _use_connection(work: Callable[[], T]) -> T:
    _drop_if_lost()
    try:
        return work()
    finally:
        _used.at = time.monotonic()
        if connection.errors_occurred:
            connection.close()


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="api")


@cache
def _waiting() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_WAITING, thread_name_prefix="waiting")


def _drop_if_lost() -> None:
    """A server that restarted while nobody asked has closed the connection: open another."""
    idle = time.monotonic() - _used.at
    if connection.connection is not None and idle > _TRUSTED_SECONDS and not connection.is_usable():
        connection.close()
