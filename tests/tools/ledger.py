"""Tools with effects that can be counted, for tests over the whole product.

``HOLDFAST_TOOLS=tests.tools.ledger`` adds them; each line of the file ``HOLDFAST_TEST_LEDGER`` is one effect:
tool, idempotency key, value.
"""

import asyncio
import os
import time
from pathlib import Path

from sessions_app.tools.declare import tool
from sessions_app.tools.port import Output, ToolContext


def _write(name: str, context: ToolContext, value: object) -> None:
    line = f"{name} {context.idempotency_key} {value}\n".encode()
    descriptor = os.open(os.environ["HOLDFAST_TEST_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@tool
def charge(amount: int, context: ToolContext) -> str:
    """Charge an amount."""
    _write("charge", context, amount)
    return f"charged {amount}"


@tool(effect="idempotent")
def put(value: str, context: ToolContext) -> str:
    """Put a value."""
    _write("put", context, value)
    return f"put {value}"


@tool(effect="read")
def look(value: str, context: ToolContext) -> str:
    """Look at a value."""
    _write("look", context, value)
    return value


@tool(timeout_seconds=300)
async def wait_for(path: str, context: ToolContext, seconds: float = 300) -> str:
    """Have an effect, then wait until a file is there."""
    _write("wait_for", context, path)
    try:
        async with asyncio.timeout(seconds):
            while not Path(path).exists():  # noqa: ASYNC110, ASYNC240
                await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        _write("cancelled", context, path)
        raise
    return "there"


@tool(timeout_seconds=0.3)
async def too_slow(context: ToolContext) -> str:
    """Have an effect and take longer than allowed."""
    _write("too_slow", context, "")
    await asyncio.sleep(60)
    return ""


@tool(timeout_seconds=300)
def block(path: str, context: ToolContext) -> str:
    """Have an effect, then keep a thread until a file is there."""
    _write("block", context, path)
    while not Path(path).exists():
        time.sleep(0.02)
    return "there"


@tool
def explode(context: ToolContext) -> str:
    """Have an effect and raise."""
    _write("explode", context, "")
    raise ValueError("exploded")


@tool(effect="read")
def flood(size: int) -> str:
    """Return that many characters."""
    return "x" * size


@tool(effect="read")
def binary(size: int) -> Output:
    """Return that many bytes that are no text."""
    return Output(content=b"\x00\xff" * (size // 2))


@tool(effect="read")
def dirty() -> str:
    """Return text that nothing can store."""
    return "a\x00b\ud83d\ude00c\ud800"


@tool(effect="read")
def chatty(lines: int, context: ToolContext) -> str:
    """Tell of progress that many times."""
    for number in range(lines):
        context.progress(f"line {number}")
    return "told"
