"""Which tools there are."""

import asyncio
import functools
import importlib
import logging
from collections.abc import Iterable
from types import ModuleType
from typing import Final

from django.conf import settings

from sessions_app.tools.builtin import calculator, current_time, fetch_page, notebook, send_webhook
from sessions_app.tools.mcp.servers import Servers
from sessions_app.tools.port import Tool, Toolset

logger = logging.getLogger(__name__)

BUILTIN: Final[tuple[Tool, ...]] = (
    current_time.current_time,
    calculator.calculator,
    fetch_page.fetch_page,
    notebook.notebook,
)


class DuplicateTool(Exception):
    """Two tools have one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There are two tools with the name {name!r}. Rename one of them.")


class UnusableTool(Exception):
    """A name of HOLDFAST_TOOLS leads to no tool; the text is one line for the operator."""

    def __init__(self, *, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"HOLDFAST_TOOLS: {path!r} cannot be used: {why}.")


async def toolset() -> Toolset:
    """The tools of this moment, as the loop that asks sees them; unchanged ones are the same objects.

    A server that is away has none. The first call waits a few seconds at most for servers to connect.
    Where the settings name something that cannot be offered there are none at all, and ``fault`` says why.
    """
    try:
        ours = local()
    except (UnusableTool, DuplicateTool) as fault:
        return Toolset(tools={}, fault=str(fault))
    return Toolset(tools=_together(ours, await _servers_here().tools()))


async def aclose() -> None:
    """End what toolset() keeps up on this loop: sessions with MCP servers, and their processes."""
    global _servers
    servers, _servers = _servers, None
    if servers is not None and servers.loop is asyncio.get_running_loop():
        await servers.aclose()


_servers: Servers | None = None


def _servers_here() -> Servers:
    """One for the process: its loop is the coordinator's. A loop that is closed takes its own with it."""
    global _servers
    if _servers is None or _servers.loop is not asyncio.get_running_loop():
        _servers = Servers()
    return _servers


def _together(local: dict[str, Tool], remote: list[Tool]) -> dict[str, Tool]:
    """What is ours comes first; a tool of a server that has a name already given is left out."""
    tools = dict(local)
    for tool in remote:
        if tool.name not in tools:
            tools[tool.name] = tool
        elif tool.name not in _left_out:
            _left_out.add(tool.name)
            logger.warning("tools.registry.left_out", extra={"tool": tool.name})
    return tools


_left_out: Final[set[str]] = set()


def local() -> dict[str, Tool]:
    """The built-in tools that are enabled and those that the setting names, by name."""
    return _local(tuple(settings.HOLDFAST_TOOLS), bool(settings.HOLDFAST_WEBHOOK_URLS))


@functools.cache
def _local(paths: tuple[str, ...], has_webhooks: bool) -> dict[str, Tool]:
    webhooks = [send_webhook.send_webhook] if has_webhooks else []
    return by_name([*BUILTIN, *webhooks, *(tool for path in paths for tool in load(path))])


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Raises DuplicateTool."""
    found: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in found:
            raise DuplicateTool(tool.name)
        found[tool.name] = tool
    return found


def load(path: str) -> list[Tool]:
    """The tools under a dotted path: a module (every tool in it, by order of appearance) or one tool.

    Raises UnusableTool.
    """
    found = _resolve(path)
    if isinstance(found, Tool):
        return [found]
    if not isinstance(found, ModuleType):
        raise UnusableTool(path=path, why="it is neither a module nor a declared tool")
    tools = [each for each in vars(found).values() if isinstance(each, Tool)]
    if not tools:
        raise UnusableTool(path=path, why="the module declares no tool")
    return tools


def _resolve(path: str) -> object:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as missing:
        module, _, name = path.rpartition(".")
        if missing.name != path or not module:
            raise UnusableTool(path=path, why=_one_line(missing)) from missing
    except Exception as error:
        raise UnusableTool(path=path, why=_one_line(error)) from error
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:
        raise UnusableTool(path=path, why=_one_line(error)) from error


def _one_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
