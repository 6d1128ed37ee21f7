"""Tools for these tests: one that never comes back and remembers what it did, one that says what it was told."""

import asyncio

from sessions_app.tools.declare import tool
from sessions_app.tools.port import Input, Reconciled, ToolContext


async def look(given: Input, context: ToolContext) -> Reconciled:
    """An entry whose name begins with ``known`` was made; of others the ledger cannot tell."""
    if str(given["entry"]).startswith("known"):
        return Reconciled(happened="yes", output="entered on page 7")
    return Reconciled(happened="cannot_tell")


@tool(timeout_seconds=1, reconcile=look)
async def ledger(entry: str) -> str:
    """Make an entry, and fall silent.

    Args:
        entry: What to write.
    """
    await asyncio.sleep(3600)
    return entry


@tool(timeout_seconds=600)
async def wait_for_ever(entry: str) -> str:
    """Never come back.

    Args:
        entry: Anything.
    """
    await asyncio.sleep(3600)
    return entry


@tool(effect="read")
async def echo(text: str) -> str:
    """Say it again.

    Args:
        text: What to say.
    """
    return text
