"""The enabled servers, each with its connection, as the rows say at the moment."""

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, InterfaceError

from sessions_app.tools.mcp import config
from sessions_app.tools.port import Tool

if TYPE_CHECKING:
    from sessions_app.tools.mcp.connection import Connection

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 10.0
FIRST_WAIT_SECONDS: Final = 5.0
"""How long the first question for tools waits for servers that are just being connected to."""


class Servers:
    """Everything happens on the loop that made it; rows are read on a thread."""

    def __init__(self, *, look_seconds: float = LOOK_SECONDS) -> None:
        self.loop = asyncio.get_running_loop()
        self._connections: dict[str, Connection] = {}
        self._unusable: dict[str, str] = {}
        self._look_seconds = look_seconds
        self._has_looked = asyncio.Event()
        self._has_waited = False
        self._closing: set[asyncio.Task[None]] = set()
        self._task = self.loop.create_task(self._run())

    async def tools(self) -> list[Tool]:
        """The tools of the servers that are connected. Waits only the first time, and not long."""
        if not self._has_waited:
            try:
                async with asyncio.timeout(FIRST_WAIT_SECONDS):
                    await self._settle()
            except TimeoutError:
                pass
            self._has_waited = True
        return [tool for name in sorted(self._connections) for tool in self._connections[name].tools]

    async def aclose(self) -> None:
        """End every session and every child process."""
        self._task.cancel()
        await asyncio.wait({self._task})
        for name in list(self._connections):
            self._close(name)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _settle(self) -> None:
        await self._has_looked.wait()
        for connection in list(self._connections.values()):
            await connection.settled.wait()

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except (DatabaseError, InterfaceError):
                logger.warning("tools.mcp.rows_not_read")
            self._has_looked.set()
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        """Connect to what is new, close what is gone, and both for what was changed."""
        wanted = await asyncio.to_thread(config.enabled)
        self._tell_unusable({name: str(each) for name, each in wanted.items() if isinstance(each, Exception)})
        servers = {name: each for name, each in wanted.items() if isinstance(each, config.Server)}
        for name, connection in list(self._connections.items()):
            if servers.get(name) != connection.server:
                self._close(name)
        missing = [server for name, server in servers.items() if name not in self._connections]
        if missing:
            connect = await asyncio.to_thread(_connection_class)
            for server in missing:
                self._connections[server.name] = connect(server)

    def _close(self, name: str) -> None:
        connection = self._connections.pop(name)
        task = self.loop.create_task(connection.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _tell_unusable(self, unusable: dict[str, str]) -> None:
        for name, reason in unusable.items():
            if self._unusable.get(name) != reason:
                logger.warning("tools.mcp.unusable", extra={"server": name, "reason": reason})
        self._unusable = unusable


def _connection_class() -> "Callable[..., Connection]":
    """Importing the protocol takes half a second: on a thread, and not where no server is enabled."""
    found: Callable[..., Connection] = importlib.import_module("sessions_app.tools.mcp.connection").Connection
    return found
