"""A server that is a child process: one JSON-RPC message a line, on its standard input and output.

Ours, because a line must have a limit, and finding its end must not cost more the longer it is.
"""

import asyncio
import logging
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from sessions_app.tools.mcp.courier import UNANSWERED

logger = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
END_SECONDS: Final = 2.0
"""How long a server may take to end by itself, and again after it was told to."""

_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")

_CHUNK_BYTES: Final = 256 * 1024
_HEAD_BYTES: Final = 1024
_ID: Final = re.compile(rb'"id"\s{0,5}:\s{0,5}(\d{1,15})')

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@dataclass(frozen=True)
class TooLong:
    """A line that is not kept, but for its beginning."""

    beginning: bytes


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
                    await _to_its_end(_end(process))
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
    lines = _Lines()
    try:
        async with arrive:
            while chunk := await process.stdout.read(_CHUNK_BYTES):
                for line in lines.feed(chunk):
                    await arrive.send(_message(line))
    except OSError as error:
        logger.warning("tools.mcp.stdio.unreadable", extra={"error": type(error).__name__})
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # nobody listens any more: the session ends
    finally:
        on_end()


class _Lines:
    """Puts chunks together to lines. Of a line over the limit only the beginning is kept."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in this chunk."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield self._line()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MAX_LINE_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces = [b"".join(self._pieces)[:_HEAD_BYTES] or piece[:_HEAD_BYTES]]

    def _line(self) -> bytes | TooLong:
        line, size = b"".join(self._pieces), self._size
        self._pieces, self._size = [], 0
        return line if size <= MAX_LINE_BYTES else TooLong(line)


def _message(line: bytes | TooLong) -> Incoming:
    try:
        return SessionMessage(_too_long(line) if isinstance(line, TooLong) else _parsed(line))
    except ValueError as error:
        return error


def _parsed(line: bytes) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_json(line, by_name=False)


def _too_long(line: TooLong) -> JSONRPCMessage:
    """The call that it answers learns that its answer cannot be read; the others go on."""
    found = _ID.search(line.beginning)
    if found is None:
        raise ValueError("a line is too long, and nothing tells whose answer it is")
    error = ErrorData(code=UNANSWERED, message=f"the answer is larger than {MAX_LINE_BYTES:,} bytes")
    return JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)


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


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Await it whole, also when this task is cancelled meanwhile; a process would be left behind."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


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
