"""What the machine knows, said in words. The page hands the same tables to its scripts."""

from typing import Any, Final

from schema.status import State
from sessions_app.web import calls, cards, pickers, sidebar

Shape = dict[str, Any]

PILLS: Final[dict[str, str]] = {
    "queued": "Queued",
    "model": "Waiting for model",
    "thinking": "Thinking",
    "answering": "Answering",
    "retrying": "Trying again",
    "waiting": "Waiting for you",
    "stopping": "Stopping…",
    "lost": "Not connected",
    "paused": "Paused",
    "stopped": "Stopped by you",
    "interrupted": "Interrupted",
    "failed": "Failed",
    "unknown": "Interrupted – outcome unknown",  # noqa: RUF001
    "undecided": "An outcome is unknown",
    "orphaned": "Interrupted – its worker stopped",  # noqa: RUF001
}

OUTCOMES: Final[dict[str, str]] = {
    "failed": "The answer failed.",
    "failed:auth": "The provider did not accept the key.",
    "failed:bad_request": "The provider refused the request.",
    "failed:configuration": "No request could be made.",
    "failed:bad_response": "The provider's answer could not be read.",
    "failed:empty": "No answer came.",
    "failed:content_filter": "The provider's filter stopped the answer.",
    "failed:network": "The provider could not be reached.",
    "failed:overflow": (
        "The conversation is longer than this model can read. Edit an earlier message, start a new chat, "
        "or choose a model that reads more."
    ),
    "failed:overloaded": "The provider is overloaded.",
    "failed:quota": "The provider's quota is used up.",
    "failed:rate_limit": "The provider asks to wait.",
    "interrupted": "The answer was interrupted.",
    "interrupted:interrupted": "Stopped by you.",
    "interrupted:shutdown": "The server was restarted while the model was answering.",
    "unknown": "The answer was cut off. Whether the model finished it is not known.",
    "unknown:cut": "The connection to the model was cut. Whether it finished the answer is not known.",
    "unknown:crash": "The server stopped while the model was being called. Whether it answered is not known.",
    "unknown:timeout": "The model fell silent. Whether it finished the answer is not known.",
    "completed": "The model returned nothing.",
    "finish:length": "The answer reached the model's limit and ends here.",
    "finish:content_filter": "The provider's filter ended this answer.",
}

AGAIN: Final = {"completed": "Regenerate", "failed": "Try again"}
THOUGHTS: Final = {"open": "Thinking…", "short": "Thought for a moment", "long": "Thought for {} s"}
BILLED: Final = "It may have been billed."

LINES: Final[dict[str, str]] = {
    "model-switched": "The model is now {}",
    "agent-switched": "The agent is now {}",
    "recovery": "The answer was interrupted and goes on here",
    "retry": "The answer is tried again",
    "system": "Continued by the system",
}

RETRY: Final[dict[str, str]] = {
    "soon": "Attempt {} follows in {seconds} s.",
    "now": "Attempt {} follows now.",
    "due": "Attempt {} follows by itself.",
}

SESSION_NOTES: Final[dict[str, str]] = {
    "orphaned": "The worker that wrote this answer stopped. What it had received is kept.",
    "parked": (
        "This chat was interrupted several times in a row, so that it is not continued by itself. "
        "A new message starts it again."
    ),
}

_BILLED_CLASSES: Final = frozenset({"failed", "ambiguous", "partial"})
_OWN_WORDS: Final = frozenset({"interrupted:interrupted", "interrupted:shutdown", "unknown:crash"})
"""Outcomes to which the stored message adds nothing for a reader."""

_BUSY_KINDS: Final = {"text": "answering", "reasoning": "thinking"}
_STATE_PILLS: Final[dict[State, str]] = {
    "queued": "queued",
    "retrying": "retrying",
    "waiting": "waiting",
    "orphaned": "orphaned",
}


def tables() -> dict[str, object]:
    """The tables for the page's scripts, which choose from them by the same rules."""
    return {
        "pills": PILLS,
        "outcomes": OUTCOMES,
        "billed": BILLED,
        "again": AGAIN,
        "thoughts": THOUGHTS,
        "marks": sidebar.MARKS,
        "policies": pickers.POLICIES,
        "no_key": pickers.NO_KEY,
        "notes": SESSION_NOTES,
        "lines": LINES,
        "retry": RETRY,
        "tools": calls.tables(),
        "cards": cards.tables(),
    }


def pill(status: Shape, newest: Shape | None) -> str:
    """Which pill says what the session is doing; empty when there is nothing to say."""
    state: State = status["state"]
    if state == "busy":
        return "" if _is_complete(newest) else _BUSY_KINDS.get(_open_kind(newest), "model")
    if state == "needs_decision":
        return "unknown" if _is_unknown(newest) else "undecided"
    if state in _STATE_PILLS:
        return _STATE_PILLS[state]
    if status["paused"] and (status["pending"]["steer"] or status["pending"]["queue"]):
        return "paused"
    return _ended_pill(newest)


def _is_unknown(message: Shape | None) -> bool:
    return message is not None and message["state"] == "unknown"


def _is_complete(message: Shape | None) -> bool:
    """Busy with nothing that a reader waits for: the owner is about to let go, or to go on."""
    return message is not None and message["type"] == "assistant" and message["state"] == "completed"


def _open_kind(message: Shape | None) -> str:
    kinds = [part["kind"] for part in message["parts"] if part["state"] == "open"] if message else []
    return kinds[-1] if kinds else ""


def _ended_pill(message: Shape | None) -> str:
    if message is None or message["type"] != "assistant":
        return ""
    match message["state"]:
        case "failed" | "unknown" as state:
            return str(state)
        case "interrupted":
            return "stopped" if _reason(message) == "interrupted" else "interrupted"
        case _:
            return ""


def note(message: Shape) -> str:
    """Why an answer ended as it did; empty for one that is simply complete or still runs."""
    if message["type"] != "assistant":
        return ""
    state = message["state"]
    if state == "unknown" and message["unknown"]:
        # The card says it.
        return ""
    if state == "completed":
        return OUTCOMES.get(f"finish:{message['finish']}", "") or _nothing(message)
    if state not in ("failed", "interrupted", "unknown"):
        return ""
    key = f"{state}:{_reason(message)}"
    said = [OUTCOMES.get(key) or OUTCOMES[state]]
    error = message["error"] or {}
    if key not in _OWN_WORDS and error.get("message"):
        said.append(error["message"])
    if state == "unknown" or error.get("error_class") in _BILLED_CLASSES:
        said.append(BILLED)
    return " ".join(said)


def _nothing(message: Shape) -> str:
    has_text = any(part["kind"] != "text" or part["text"].strip() for part in message["parts"])
    return "" if has_text else OUTCOMES["completed"]


def _reason(message: Shape) -> str:
    return str((message["error"] or {}).get("reason", ""))


def again(newest: Shape | None) -> str:
    """What it is called to ask for the newest answer once more."""
    return AGAIN["failed" if newest is not None and newest["state"] == "failed" else "completed"]


def thoughts(seconds: float | None) -> str:
    """The line that reasoning folds to; without seconds it is still written."""
    if seconds is None:
        return THOUGHTS["open"]
    return THOUGHTS["short"] if seconds < 1 else THOUGHTS["long"].replace("{}", str(int(seconds)))


def session_note(status: Shape) -> str:
    """What a reader must know of a session that does not go on by itself."""
    is_parked = status["state"] == "needs_decision" and status["parked"]
    return SESSION_NOTES.get("parked" if is_parked else status["state"], "")


def line(message: Shape, *, origin: str) -> str:
    """What a message that nobody wrote is called in the transcript."""
    key = message["type"] if message["type"] in LINES else origin
    named = message["model"] if key == "model-switched" else message["agent"]
    return LINES.get(key, LINES["system"]).replace("{}", named or "")


def title_of(text: str) -> str:
    """A name for a chat from its first line; at most 60 characters, cut at a word."""
    lines = (" ".join(each.split()) for each in text.split("\n"))
    line = next((each for each in lines if each), "")
    if len(line) <= _TITLE_CHARACTERS:
        return line
    cut = line[:_TITLE_CHARACTERS].rsplit(" ", 1)[0]
    return f"{cut.rstrip('.,;:')}…"


_TITLE_CHARACTERS: Final = 60
