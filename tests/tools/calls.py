"""Contexts and a short way to enter a tool, for the tests of this directory."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

from sessions_app.tools.enter import Entered, enter
from sessions_app.tools.port import Input, Tool, ToolContext

T = TypeVar("T")


def context(
    *, session_id: str = "ses_1", progress: Callable[[str], None] = lambda _: None, key: str = "key-1"
) -> ToolContext:
    return ToolContext(session_id=session_id, call_id="prt_1", idempotency_key=key, progress=progress)


async def call(tool: Tool, *, session_id: str = "ses_1", **given: object) -> Entered:
    """Normalise and enter, as a step does."""
    arguments: Input = given  # type: ignore[assignment]
    return await enter(tool, tool.normalise(arguments), context(session_id=session_id))


async def in_database(unit: Callable[[], T]) -> T:
    """Ask the database from a test that is on the loop; no connection is left open."""

    def ask() -> T:
        try:
            return unit()
        finally:
            connections.close_all()

    return await asyncio.to_thread(ask)
