"""The tools of the matrix. Each entry of a call is one line of the ledger, on the disk before anything else."""

import json
import os
import time
from pathlib import Path
from typing import Any

from sessions_app.tools.declare import tool
from sessions_app.tools.port import ToolContext
from tests.crash.wrapping import DIRECTORY

_LOOK_AGAIN_SECONDS = 0.02
_LONGEST_HOLD_SECONDS = 50.0


def _enter(name: str, context: ToolContext, given: dict[str, Any]) -> None:
    line = {
        "call": context.call_id, "session": context.session_id, "tool": name, "input": given,
        "pid": os.getpid(), "at": time.time(),
    }  # fmt: skip
    ledger = os.open(Path(os.environ[DIRECTORY]) / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, (json.dumps(line) + "\n").encode())
        os.fsync(ledger)
    finally:
        os.close(ledger)


def _hold(gate: str, context: ToolContext) -> None:
    """Wait until the driver opens the gate, telling progress."""
    if not gate:
        return
    deadline = time.monotonic() + _LONGEST_HOLD_SECONDS
    while not (Path(os.environ[DIRECTORY]) / f"gate-{gate}").exists():
        context.progress(f"waiting at {gate}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody opened {gate}")
        time.sleep(_LOOK_AGAIN_SECONDS)


@tool(effect="read")
def look(what: str, context: ToolContext, gate: str = "") -> str:
    """Look at something."""
    _enter("look", context, {"what": what, "gate": gate})
    _hold(gate, context)
    return f"{what} is there"


@tool(effect="side_effect")
def charge(amount: int, context: ToolContext, gate: str = "") -> str:
    """Charge an amount."""
    _enter("charge", context, {"amount": amount, "gate": gate})
    _hold(gate, context)
    return f"charged {amount}"


@tool(effect="side_effect")
def send(to: str, context: ToolContext) -> str:
    """Send a message. A person is asked first."""
    _enter("send", context, {"to": to})
    return f"sent to {to}"
