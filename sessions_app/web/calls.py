"""Tool calls as the page shows them: a line of words, formatted input, what came back, and their folds."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from sessions_app.web import cards

Shape = dict[str, Any]

SHOWN_CHARACTERS: Final = 4000
"""Of an output or an input; the API and the export hold all of it."""

LABELS: Final[dict[str, str]] = {
    "pending": "Preparing {}…",
    "waiting": "{} waits for you",
    "approved": "{} is allowed and about to run",
    "running": "Running {}…",
    "completed": "Used {}",
    "error": "{} failed",
    "denied": "{} was not allowed",
    "unknown": "{}: outcome unknown",
}
GROUP_LABELS: Final = {"running": "Using {} tools…", "completed": "Used {} tools"}
CUT: Final = "Only the beginning is shown."

_FACTS: Final = (
    "name",
    "state",
    "effect",
    "hosted",
    "approval",
    "approval_reason",
    "earlier",
    "unknown",
    "decision",
    "can_be_asked",
)


def facts(part: Shape) -> Shape:
    """What the scripts must know of a call and the page does not show as text."""
    return {name: part[name] for name in _FACTS}


def dress(part: Shape, *, is_newest: bool) -> None:
    """Add the words of a call to its shape."""
    part["look"] = look(part)
    part["asks"] = part["look"] == "waiting" or (part["look"] == "unknown" and part["decision"] is None)
    part["label"] = LABELS[part["look"]].replace("{}", part["name"] or "a tool")
    part["input_text"] = part["raw_input"] if part["input"] is None else formatted(part["input"])
    part["result_text"] = part["error"] or part["output"] or ""
    part["is_cut"] = any(len(part[name]) > SHOWN_CHARACTERS for name in ("input_text", "result_text"))
    for name in ("input_text", "result_text"):
        part[name] = part[name][:SHOWN_CHARACTERS]
    part["card"] = cards.of_call(part, is_newest=is_newest)


def look(part: Shape) -> str:
    """Which words and colours a call gets: its state, or what is special about it."""
    if part["unknown"]:
        return "unknown"
    if part["state"] == "error":
        return "denied" if part["approval"] == "denied" else "error"
    if part["state"] == "pending" and part["approval"] in ("waiting", "approved", "denied"):
        return str(part["approval"])
    return str(part["state"])


def formatted(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def blocks(parts: Sequence[Shape]) -> list[Shape]:
    """The parts in order, where neighbouring calls that need nobody's attention share one fold."""
    found: list[Shape] = []
    for calm, run in groupby(parts, key=is_calm):
        members = list(run)
        if calm and len(members) > 1:
            found.append({"calls": members, "label": group_label(members), "running": is_running(members)})
        else:
            found += [{"part": part} for part in members]
    return found


def is_calm(part: Shape) -> bool:
    return part["kind"] == "tool" and part["look"] in ("pending", "approved", "running", "completed")


def is_running(calls: Sequence[Shape]) -> bool:
    return any(call["look"] != "completed" for call in calls)


def group_label(calls: Sequence[Shape]) -> str:
    return GROUP_LABELS["running" if is_running(calls) else "completed"].replace("{}", str(len(calls)))


def tables() -> dict[str, object]:
    return {"calls": LABELS, "groups": GROUP_LABELS, "cut": CUT, "shown": SHOWN_CHARACTERS}
