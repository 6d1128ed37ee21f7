"""An MCP server for tests, run as a process of its own: ``mcp_server.py JOURNAL stdio|http [PORT]``.

The journal gets a line for every function that was entered and, over HTTP, for every POST.
"""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations

journal = Path(sys.argv[1])
server = MCPServer("tests", log_level="CRITICAL")


def write(line: str) -> None:
    with journal.open("a") as lines:
        lines.write(f"{line}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="Echo"))
def echo(text: str) -> str:
    """Say it again."""
    write(f"echo {text}")
    return text


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def note(text: str) -> str:
    """Note it."""
    write(f"note {text}")
    return "noted"


@server.tool()
def charge(amount: int, context: Context) -> str:
    """Charge somebody."""
    meta: Any = context.request_context.meta or {}
    write(f"charge {amount} {meta.get('holdfast/idempotencyKey')}")
    return f"charged {amount}"


@server.tool()
async def hang() -> str:
    """Never return."""
    write("hang")
    try:
        await anyio.sleep_forever()
    finally:
        write("hang cancelled")
    return ""


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def hang_reading() -> str:
    """Never return, having changed nothing."""
    write("hang_reading")
    await anyio.sleep_forever()
    return ""


@server.tool()
def die() -> str:
    """End the server in the middle of the call."""
    write("die")
    os._exit(9)


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no funds")


@server.tool()
def picture() -> Image:
    """Draw."""
    return Image(data=b"\x89PNG\x00\xff" * 100, format="png")


@server.tool(structured_output=False)
def mixed() -> list[Any]:
    """Tell and draw."""
    return ["a cat", Image(data=b"\x89PNG\x00\xff" * 100, format="png")]


@server.tool(structured_output=False)
def big(size: int) -> str:
    """Say much."""
    return "x" * size


@server.tool(structured_output=False)
async def slowly(context: Context) -> str:
    """Tell of progress."""
    await context.report_progress(1, 2, "half")
    return "done"


@server.tool()
def ask() -> CallToolResult | InputRequiredResult:
    """Ask back."""
    write("ask")
    return InputRequiredResult(request_state="more")


@server.tool(name="odd.name/with signs")
def odd() -> CallToolResult:
    """Have an odd name."""
    return CallToolResult(content=[TextContent(text="odd")])


class CountedPosts:
    """Writes a line for each POST, before the server sees it."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("method") == "POST":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            write(f"POST {headers.get('mcp-method', '')} {headers.get('authorization', '')}")
        await self.app(scope, receive, send)


if __name__ == "__main__":
    if sys.argv[2] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        app = CountedPosts(server.streamable_http_app(json_response=sys.argv[2] == "json"))
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[3]), log_level="critical")
