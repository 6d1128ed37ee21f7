"""Which tools there are."""

import functools
import importlib
import logging
from collections.abc import Iterable
from types import ModuleType
from typing import Final

from django.conf import settings

from sessions_app.tools.builtin import calculator, current_time
from sessions_app.tools.port import Tool, Toolset

logger = logging.getLogger(__name__)

BUILTIN: Final[tuple[Tool, ...]] = (current_time.current_time, calculator.calculator)


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
    """The tools of this moment.

    Raises UnusableTool or DuplicateTool when the settings name something that cannot be offered.
    """
    return Toolset(tools=local(tuple(settings.HOLDFAST_TOOLS)))


@functools.cache
def local(paths: tuple[str, ...]) -> dict[str, Tool]:
    """The built-in tools and those that the setting names, by name."""
    return by_name([*BUILTIN, *(tool for path in paths for tool in load(path))])


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
