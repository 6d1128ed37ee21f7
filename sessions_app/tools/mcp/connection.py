"""One client session with one server: kept up in the background, and the way of every call to it."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from sessions_app.tools.mcp import courier, listing, results, stdio
from sessions_app.tools.mcp.config import Server
from sessions_app.tools.port import Input, OutcomeUnknown, Output, Tool, ToolContext

logger = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 20.0
REFRESH_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 3.0
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
MAX_PAGES: Final = 50
REPEAT_LOG_SECONDS: Final = 600.0

IDEMPOTENCY_KEY: Final = "holdfast/idempotencyKey"
"""Where a call's key stands in its ``_meta``, for servers that look."""


class Connection:
    """Connects, lists, and connects again with growing pauses, until it is closed.

    While the server is away it has no tools. Nothing is sent twice, and calls under way are let end before a
    session is given up. Everything happens on the loop that made it.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tools: tuple[Tool, ...] = ()
        self.settled = asyncio.Event()
        """Set once the first try to connect ended, either way."""
        self._life = _Life()
        self._session: ClientSession | None = None
        self._listed: list[types.Tool] = []
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_closing = False
        self._failures = 0
        self._told = _Told()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """End the session; a child process is gone when this returns."""
        self._is_closing = True
        self._life.look.set()
        await asyncio.wait({self._task}, timeout=CLOSE_SECONDS if self._session else 0)
        self._task.cancel()
        await asyncio.wait({self._task})

    async def call(self, tool: str, given: Input, context: ToolContext) -> Output:
        """Send the call once. Raises OutcomeUnknown when no answer tells what came of it."""
        session = self._session
        if session is None or self._life.is_over:
            return results.failed(f"The tool was not run: the server {self.server.name} is not connected.")
        self._calls += 1
        self._idle.clear()
        try:
            return await self._send(session, tool, given, context)
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _send(self, session: ClientSession, tool: str, given: Input, context: ToolContext) -> Output:
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            context.progress(results.progress_line(progress, total, message))

        meta: Any = {IDEMPOTENCY_KEY: context.idempotency_key}
        arguments: dict[str, Any] = dict(given)
        try:
            result = await session.call_tool(
                tool, arguments, progress_callback=tell, meta=meta, allow_input_required=True
            )
        except MCPError as error:
            return results.of_error(error, server=self.server.name)
        except ValidationError:
            raise OutcomeUnknown(f"{self.server.name}: the answer is no valid result") from None
        except RuntimeError:
            return results.failed("The server's answer does not fit the schema that it declares for it.")
        if isinstance(result, types.InputRequiredResult):
            return results.of_request_for_input()
        return results.of_result(result)

    # The life of the session

    async def _run(self) -> None:
        while not self._is_closing:
            try:
                await self._live()
            except Exception as error:  # noqa: BLE001  whatever a server does, it costs its tools only
                self._told.away(self.server.name, error)
            finally:
                self._gone()
                self.settled.set()
            if not self._is_closing:
                await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        seconds = min(FIRST_PAUSE * 2.0**self._failures, LONGEST_PAUSE)
        self._failures += 1
        return seconds * random.uniform(0.75, 1.0)  # noqa: S311  jitter

    async def _live(self) -> None:
        """One session from connecting to its end."""
        life = self._life = _Life()
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(CONNECT_SECONDS):
                session = await stack.enter_async_context(_session(self.server, life))
                life.look.clear()
                await self._list(session)
            life.is_up = True
            self._session = session
            self._failures = 0
            self._told.back(self.server.name, tools=len(self.tools))
            self.settled.set()
            try:
                await self._keep(session, life)
            finally:
                self._gone()
                await self._let_calls_end()

    async def _keep(self, session: ClientSession, life: "_Life") -> None:
        """List again from time to time, and when there is reason to; ends with the session."""
        while True:
            try:
                async with asyncio.timeout(REFRESH_SECONDS):
                    await life.look.wait()
            except TimeoutError:
                pass
            life.look.clear()
            if life.is_over or self._is_closing:
                return
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._list(session)

    async def _list(self, session: ClientSession) -> None:
        listed: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None or len(listed) > listing.MAX_TOOLS:
                break
        if listed == self._listed:
            return  # the same tools stay the same objects
        self._listed = listed
        self.tools = tuple(listing.tools(listed, server=self.server, call=self.call))

    def _gone(self) -> None:
        self._session = None
        self._listed = []
        self.tools = ()

    async def _let_calls_end(self) -> None:
        """Ending the session would make the outcome of every call under way unknown."""
        try:
            async with asyncio.timeout(self.server.timeout_seconds + 1):
                await self._idle.wait()
        except TimeoutError:
            pass


class _Life:
    """What is heard of one session from below."""

    def __init__(self) -> None:
        self.is_up = False
        self.is_over = False
        self.look = asyncio.Event()
        """Set when there is reason to look at the server again."""

    def ended(self) -> None:
        self.is_over = True
        self.look.set()

    async def heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.look.set()


@asynccontextmanager
async def _session(server: Server, life: _Life) -> AsyncIterator[ClientSession]:
    transport: Any = _child(server, life) if server.command else _http(server, life)
    async with Client(transport, cache=None, message_handler=life.heard) as client:
        yield client.session


def _child(server: Server, life: _Life) -> AbstractAsyncContextManager[stdio.Streams]:
    return stdio.connect(server.command, on_end=life.ended)


@asynccontextmanager
async def _http(server: Server, life: _Life) -> AsyncIterator[Any]:
    async with (
        courier.client(
            headers=dict(server.headers), is_up=lambda: life.is_up, on_trouble=life.look.set
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=courier.MAX_RESULT_BYTES
        ) as streams,
    ):
        yield streams


@dataclass
class _Told:
    """What the log was told last, so that a server that is away is not told of at every try."""

    reason: str = ""
    at: float = 0.0

    def back(self, server: str, *, tools: int) -> None:
        self.reason = ""
        logger.info("tools.mcp.connected", extra={"server": server, "tools": tools})

    def away(self, server: str, error: BaseException) -> None:
        reason, now = _reason(error), asyncio.get_running_loop().time()
        if reason == self.reason and now - self.at < REPEAT_LOG_SECONDS:
            return
        self.reason, self.at = reason, now
        logger.warning("tools.mcp.away", extra={"server": server, "reason": reason})


def _reason(error: BaseException) -> str:
    """The kind of the fault. Texts of strangers may hold anything and are not logged, our own are."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        ours = (courier.NOT_SENT, courier.UNANSWERED, courier.REFUSED)
        return error.message if error.code in ours else f"MCP error {error.code}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
