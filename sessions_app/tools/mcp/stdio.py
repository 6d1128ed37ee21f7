"""A server that is a child process: one JSON-RPC message a line, on its standard input and output.

Ours, because a line must have a limit, and finding its end must not cost more the longer it is.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

logger = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
END_SECONDS: Final = 2.0
"""How long a server may take to end by itself, and again after it was told to."""

_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def connect(command: Sequence[str], *, on_end: Callable[[], None]) -> AsyncIterator[Streams]:
    """Start the command and yield its two streams; leaving ends it and all its children.

    ``on_end`` is called once nothing more can be read or written. The child gets none of our environment but
    what programs need to run, and its standard error goes nowhere. Raises OSError.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _INHERITED if name in os.environ},
        start_new_session=True,
        limit=MAX_LINE_BYTES,
    )
    arrive, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, leave = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, arrive, on_end)
            tasks.start_soon(_write, process, leave, on_end)
            try:
                yield incoming, outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                tasks.cancel_scope.cancel()
    finally:
        for stream in (arrive, incoming, outgoing, leave):
            stream.close()


async def _read(
    process: asyncio.subprocess.Process,
    arrive: MemoryObjectSendStream[Incoming],
    on_end: Callable[[], None],
) -> None:
    assert process.stdout is not None
    try:
        async with arrive:
            while line := await process.stdout.readline():
                await arrive.send(_message(line))
    except (ValueError, OSError) as error:  # ValueError: a line over the limit
        logger.warning("tools.mcp.stdio.unreadable", extra={"error": type(error).__name__})
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # nobody listens any more: the session ends
    finally:
        on_end()


def _message(line: bytes) -> Incoming:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(
    process: asyncio.subprocess.Process,
    leave: MemoryObjectReceiveStream[SessionMessage],
    on_end: Callable[[], None],
) -> None:
    assert process.stdin is not None
    try:
        async for message in leave:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except OSError:
        # It may live on without reading: what waits for it must learn that nothing will come.
        on_end()
        _signal(process, signal.SIGKILL)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input; then tell its process group to end; then end it."""
    assert process.stdin is not None
    process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if await _is_gone(process):
            break
        _signal(process, number)
    await _is_gone(process)
    _signal(process, signal.SIGKILL)  # what it started may have outlived it
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()  # a grandchild that holds the pipes would keep it open


async def _is_gone(process: asyncio.subprocess.Process) -> bool:
    """Not ``process.wait()``: that waits for the pipes too, which a grandchild may hold."""
    for _ in range(int(END_SECONDS / 0.01)):
        if process.returncode is not None:
            break
        await asyncio.sleep(0.01)
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
