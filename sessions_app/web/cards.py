"""Cards: what waits for a person's decision, what is known of it, and what was chosen.

The page's scripts make the same cards from the same tables.
"""

from typing import Any, Final

Shape = dict[str, Any]

TITLES: Final[dict[str, str]] = {
    "attempt": "Whether the model answered is not known",
    "call": "Whether {} had its effect is not known",
    "approval": "Allow {}?",
}
DECIDED: Final[dict[str, str]] = {
    "retry": "Tried again",
    "abandon": "Abandoned",
    "mark_done": "Marked as done",
    "mark_not_done": "Marked as not done",
    "approve": "Allowed once",
    "deny": "Denied",
    "policy": "Left unknown, and the answer went on",
}
WHAT: Final[dict[str, str]] = {
    "attempt": "The connection to the model was lost before its answer was complete.",
    "attempt:crash": "The server stopped while the model was being called.",
    "attempt:timeout": "The model fell silent in its answer.",
    "call": "The call was started and did not come back.",
    "approval": "The agent may use this tool only when you allow it.",
    "approval:duplicate": (
        "A call with this tool and this input was made before, and its outcome is unknown. "
        "If it had its effect, allowing this one has it twice."
    ),
}
RISKS: Final[dict[str, str]] = {
    "attempt": "Trying again may be billed twice.",
    "attempt:superseded": "The conversation has gone on since; nothing waits for this answer.",
    "call": "This tool may already have changed something. It is not run again by itself.",
    "approval": "Waiting for you · no time limit",
}
ACTIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "attempt": [
        {"value": "retry", "label": "Retry", "confirm": True},
        {"value": "abandon", "label": "Abandon", "confirm": True},
    ],
    "attempt:superseded": [{"value": "abandon", "label": "Abandon", "confirm": True}],
    "call": [
        {"value": "mark_done", "label": "Mark as done…", "confirm": False},
        {"value": "mark_not_done", "label": "Mark as not done", "confirm": True},
    ],
    "approval": [
        {"value": "approve", "label": "Allow once", "confirm": False},
        {"value": "deny", "label": "Deny", "confirm": False},
    ],
    "approval:duplicate": [
        {"value": "approve", "label": "Allow once", "confirm": True},
        {"value": "deny", "label": "Deny", "confirm": False},
    ],
}
ASKS: Final[dict[str, dict[str, Any]]] = {
    "attempt": {"value": "ask", "label": "Check with provider", "confirm": False},
    "call": {"value": "ask", "label": "Check with the tool", "confirm": False},
}
"""Offered first where somebody may know what really happened."""
ASKED: Final = (
    "It was asked, and does not tell so far. The outcome stays unknown until it does, or until you decide."
)
STEPS: Final[dict[str, str]] = {
    "prepared": "Prepared",
    "sent": "Sent",
    "received": "Received {} of ? characters",
    "requested": "Requested",
    "started": "Started",
    "result": "Result not recorded",
}
BANNER: Final = {"one": "1 item needs your decision", "many": "{} items need your decision"}


def tables() -> dict[str, object]:
    return {
        "titles": TITLES,
        "decided": DECIDED,
        "what": WHAT,
        "risks": RISKS,
        "actions": ACTIONS,
        "asks": ASKS,
        "asked": ASKED,
        "steps": STEPS,
        "banner": BANNER,
    }


def of_attempts(message: Shape, attempts: list[Shape], *, is_newest: bool) -> list[Shape]:
    """A card for each attempt of the message whose outcome is unknown, decided or not."""
    return [
        _attempt(message, attempt, is_newest=is_newest)
        for attempt in attempts
        if attempt["state"] == "unknown" and attempt["purpose"] == "step"
    ]


def attempt_facts(attempt: Shape) -> Shape:
    """What the scripts must know of an unknown attempt."""
    return {
        "id": attempt["id"],
        "reason": (attempt["error"] or {}).get("reason", ""),
        "answered": attempt["headers_at"] is not None,
        "decision": attempt["decision"],
        "can_be_asked": attempt["can_be_asked"],
    }


def _attempt(message: Shape, attempt: Shape, *, is_newest: bool) -> Shape:
    facts = attempt_facts(attempt)
    key = "attempt" if is_newest else "attempt:superseded"
    received = sum(len(part["text"]) for part in message["parts"] if part["kind"] == "text")
    return {
        "kind": "attempt",
        "id": facts["id"],
        "title": title(facts["decision"]) or TITLES["attempt"],
        "what": WHAT.get(f"attempt:{facts['reason']}", WHAT["attempt"]),
        "steps": [
            _step("prepared", "done"),
            _step("sent", "done" if facts["answered"] else "unknown"),
            _step("received", "unknown", count=received),
        ],
        "risk": RISKS[key],
        "actions": _actions(key, asks="attempt" if facts["can_be_asked"] else None),
        "decision": facts["decision"],
    }


def of_call(part: Shape, *, is_newest: bool) -> Shape | None:
    """The card of a call: its unknown outcome, or the question whether it may run."""
    kind = kind_of(part)
    if kind is None:
        return None
    key = "approval:duplicate" if kind == "approval" and part["approval_reason"] == "duplicate" else kind
    steps = [_step("requested", "done"), _step("started", "done"), _step("result", "unknown")]
    return {
        "kind": kind,
        "id": part["id"],
        "title": title(part["decision"]) or TITLES[kind].replace("{}", part["name"] or "a tool"),
        "what": WHAT[key],
        "steps": steps if kind == "call" else [],
        "risk": RISKS[kind],
        "actions": _actions(key, asks="call" if kind == "call" and part["can_be_asked"] else None),
        "decision": part["decision"],
        "earlier": part["earlier"] or "",
    }


def _actions(key: str, *, asks: str | None) -> list[dict[str, Any]]:
    return ACTIONS[key] if asks is None else [ASKS[asks], *ACTIONS[key]]


def kind_of(part: Shape) -> str | None:
    if part["unknown"]:
        return "call"
    if part["approval"] in ("approved", "denied") or _is_asked(part):
        return "approval"
    return None


def _is_asked(part: Shape) -> bool:
    """A call whose step was stopped before anybody answered asks nobody any more."""
    return bool(part["approval"] == "waiting" and part["state"] == "pending")


def _step(name: str, mark: str, *, count: int = 0) -> Shape:
    return {"words": STEPS[name].replace("{}", str(count)), "mark": mark}


def title(decision: Shape | None) -> str:
    """Who decided what; empty as long as nobody did. The time follows it, as the reader's clock shows it."""
    if decision is None:
        return ""
    if decision["policy"]:
        return DECIDED["policy"]
    return f"{DECIDED[decision['action']]} by {decision['by']}"


def banner(count: int) -> str:
    if count == 0:
        return ""
    return BANNER["one"] if count == 1 else BANNER["many"].replace("{}", str(count))
