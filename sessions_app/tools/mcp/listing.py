"""What a server's list of tools becomes here."""

import json
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from pydantic import JsonValue

from schema.events import Effect
from schema.text import clean
from sessions_app.tools.declare import bounded
from sessions_app.tools.mcp import names
from sessions_app.tools.mcp.config import Server
from sessions_app.tools.port import BadArguments, Input, Output, Tool, ToolContext

logger = logging.getLogger(__name__)

MAX_TOOLS: Final = 200
MAX_DESCRIPTION: Final = 4000
MAX_SCHEMA_BYTES: Final = 64 * 1024
_MAX_DEPTH: Final = 100

Call = Callable[[str, Input, ToolContext], Awaitable[Output]]


def tools(listed: list[types.Tool], *, server: Server, call: Call) -> list[Tool]:
    """The tools that can be offered; others are left out and logged."""
    found: dict[str, Tool] = {}
    for each in listed[:MAX_TOOLS]:
        tool = _tool(each, server=server, call=call)
        if tool is None or tool.name in found:
            logger.warning("tools.mcp.tool_left_out", extra={"server": server.name, "tool": each.name[:100]})
        else:
            found[tool.name] = tool
    if len(listed) > MAX_TOOLS:
        logger.warning("tools.mcp.too_many_tools", extra={"server": server.name, "listed": len(listed)})
    return list(found.values())


def effect(annotations: types.ToolAnnotations | None, *, trusted: bool) -> Effect:
    """Hints are believed only of servers that an administrator marked as trusted."""
    if annotations is None or not trusted:
        return "side_effect"
    if annotations.read_only_hint:
        return "read"
    return "idempotent" if annotations.idempotent_hint else "side_effect"


def _tool(listed: types.Tool, *, server: Server, call: Call) -> Tool | None:
    schema = _schema(listed.input_schema)
    if schema is None:
        return None
    name = names.tool_name(server=server.name, tool=listed.name)
    annotations = listed.annotations

    async def enter(given: Input, context: ToolContext) -> Output:
        return await call(listed.name, given, context)

    return Tool(
        name=name,
        description=bounded(clean(listed.description or listed.title or listed.name), MAX_DESCRIPTION),
        parameters=schema,
        effect=effect(annotations, trusted=server.trusted),
        normalise=lambda given: _normalise(given, name=name, schema=schema),
        enter=enter,
        timeout_seconds=server.timeout_seconds,
        annotations=_annotations(annotations, server=server, tool=listed.name),
    )


def _schema(given: dict[str, Any]) -> dict[str, JsonValue] | None:
    """The schema as plain JSON; None when it describes no object or is too large."""
    try:
        text = json.dumps(given, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None
    if len(text) > MAX_SCHEMA_BYTES or given.get("type") != "object":
        return None
    schema: dict[str, JsonValue] = json.loads(clean(text))
    schema.setdefault("properties", {})
    return schema


def _annotations(
    annotations: types.ToolAnnotations | None, *, server: Server, tool: str
) -> dict[str, JsonValue]:
    """Stored with each call: what was said of the tool then, and whether it was believed."""
    told = (
        {} if annotations is None else annotations.model_dump(by_alias=True, exclude_none=True, mode="json")
    )
    told = {
        key: bounded(clean(value), 200) if isinstance(value, str) else value for key, value in told.items()
    }
    return {**told, "server": server.name, "tool": clean(tool), "trusted": server.trusted}


def _normalise(given: Input, *, name: str, schema: dict[str, JsonValue]) -> Input:
    """The server checks its arguments itself; here only what needs no trust in its schema.

    Its patterns are not run on our side: an expression of a stranger can take for ever.
    """
    properties = schema["properties"]
    required = schema.get("required")
    if isinstance(required, list) and (missing := [key for key in required if key not in given]):
        raise BadArguments(f"Invalid arguments for {name}: {', '.join(map(str, missing))}: is required.")
    known = (
        properties if isinstance(properties, dict) and schema.get("additionalProperties") is False else given
    )
    if unknown := [key for key in given if key not in known]:
        told = bounded(", ".join(unknown), 200)
        raise BadArguments(f"Invalid arguments for {name}: {told}: there is no such argument.")
    normal = _plain(given, _MAX_DEPTH, name)
    assert isinstance(normal, dict)
    return normal


def _plain(value: JsonValue, depth: int, name: str) -> JsonValue:
    if depth == 0 or (isinstance(value, float) and not math.isfinite(value)):
        raise BadArguments(f"Invalid arguments for {name}: they are not plain JSON of a reasonable depth.")
    match value:
        case str():
            return clean(value)
        case list():
            return [_plain(item, depth - 1, name) for item in value]
        case dict():
            return {clean(key): _plain(item, depth - 1, name) for key, item in value.items()}
        case _:
            return value
