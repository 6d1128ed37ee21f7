"""Enters a tool within its time and tells its end as data."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from sessions_app.tools import declare, overflow
from sessions_app.tools.port import INTERRUPTED, Input, OutcomeUnknown, Output, Tool, ToolContext

logger = logging.getLogger(__name__)

CANCEL_GRACE_SECONDS: Final = 5.0
"""How long a function may take to end after it was told to; then nobody waits for it any more."""

_left_behind: set["asyncio.Task[Output]"] = set()


@dataclass(frozen=True, kw_only=True)
class Succeeded:
    output: Output


@dataclass(frozen=True, kw_only=True)
class Failed:
    """``known``: the tool itself said so, or its effect is read; else it may have had its effect."""

    error: str
    known: bool


Entered = Succeeded | Failed


async def enter(tool: Tool, given: Input, context: ToolContext) -> Entered:
    """Run the tool with a normalised input.

    Raises nothing but CancelledError, after the function was told and had a moment to end; the call is then
    as unknown as one that was cut by a crash. A plain function cannot be told: it is left behind in its
    thread, and its result is dropped.
    """
    task = asyncio.ensure_future(tool.enter(given, context))
    try:
        ended, _ = await asyncio.wait({task}, timeout=tool.timeout_seconds)
    except asyncio.CancelledError:
        await _end(task, tool, context)
        raise
    if ended:
        return _told(task, tool, context)
    await _end(task, tool, context)
    if _has_result(task):
        return _told(task, tool, context)
    return Failed(
        error=f"Tool execution timed out after {tool.timeout_seconds:g} seconds", known=tool.effect == "read"
    )


async def _end(task: "asyncio.Task[Output]", tool: Tool, context: ToolContext) -> None:
    """Tell the function to end and wait a moment; one that goes on all the same is let go."""
    task.cancel()
    deadline = asyncio.get_running_loop().time() + CANCEL_GRACE_SECONDS
    is_cancelled = False
    while not task.done() and (left := deadline - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            is_cancelled = True
    if task.done():
        _look_at(task)
    else:
        _leave(task, tool, context)
    if is_cancelled:
        raise asyncio.CancelledError


def _leave(task: "asyncio.Task[Output]", tool: Tool, context: ToolContext) -> None:
    _left_behind.add(task)
    task.add_done_callback(_forget)
    logger.warning("tools.call.left_behind", extra={"tool": tool.name, "call": context.call_id})


def _forget(task: "asyncio.Task[Output]") -> None:
    _left_behind.discard(task)
    _look_at(task)


def _look_at(task: "asyncio.Task[Output]") -> None:
    """An exception that nobody looked at is reported as a fault of the program."""
    if not task.cancelled():
        task.exception()


def _has_result(task: "asyncio.Task[Output]") -> bool:
    """A result in the last moment counts. An error does not: the cancellation may have caused it."""
    return task.done() and not task.cancelled() and task.exception() is None and not task.result().is_error


def _told(task: "asyncio.Task[Output]", tool: Tool, context: ToolContext) -> Entered:
    extra = {"tool": tool.name, "call": context.call_id, "session": context.session_id}
    try:
        output = task.result()
    except OutcomeUnknown:
        # Not its text, which may be a server's own words.
        logger.warning("tools.call.unknown", extra=extra)
        return Failed(error=INTERRUPTED, known=tool.effect == "read")
    except asyncio.CancelledError:
        logger.warning("tools.call.cancelled_itself", extra=extra)
        return Failed(error=INTERRUPTED, known=tool.effect == "read")
    except BaseException as error:  # noqa: BLE001  whatever it is, it belongs to this call alone
        output = declare.failed(error, name=tool.name)
    if output.is_error:
        return Failed(error=overflow.error_text(output), known=True)
    return Succeeded(output=output)
