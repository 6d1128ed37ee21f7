"""Tools of the processes under test. Each entry of a call is one line of the ledger, on the disk first."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Final

from sessions_app.tools.declare import tool
from sessions_app.tools.port import ToolContext

DIRECTORY: Final = "HOLDFAST_TEST_DIRECTORY"
_LOOK_AGAIN_SECONDS: Final = 0.02
_LONGEST_HOLD_SECONDS: Final = 50.0


def directory() -> Path:
    return Path(os.environ[DIRECTORY])


def _enter(name: str, context: ToolContext) -> None:
    line = {"call": context.call_id, "session": context.session_id, "tool": name, "pid": os.getpid()}
    ledger = os.open(directory() / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, (json.dumps(line) + "\n").encode())
        os.fsync(ledger)
    finally:
        os.close(ledger)


def _hold() -> None:
    deadline = time.monotonic() + _LONGEST_HOLD_SECONDS
    while not (directory() / "open").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("nobody opened the gate")
        time.sleep(_LOOK_AGAIN_SECONDS)


@tool(effect="read")
def look(context: ToolContext) -> str:
    """Look, until the gate is open."""
    _enter("look", context)
    _hold()
    return "seen"


@tool(effect="idempotent")
def set_up(context: ToolContext) -> str:
    """Set something up, until the gate is open."""
    _enter("set_up", context)
    _hold()
    return "set"


@tool(effect="side_effect")
def pay(context: ToolContext) -> str:
    """Pay, until the gate is open."""
    _enter("pay", context)
    _hold()
    return "paid"


@tool(effect="read")
def kill(context: ToolContext, number: int = 0) -> str:
    """Kill the worker that entered it."""
    _enter("kill", context)
    os.kill(os.getpid(), signal.SIGKILL)
    return str(number)
