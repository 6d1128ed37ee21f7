"""What a model is told became of a call. Pure.

A call that ended without a result of its own is stored with one text whatever happened; here the model
learns which of three it was: not run, run for reading only, or possibly run.
"""

import json
from dataclasses import dataclass
from typing import Final

from schema.attempts import Decision
from sessions_app.history.entries import PartEntry
from sessions_app.tools.port import INTERRUPTED

NO_OUTPUT: Final = "(no output)"
NO_REASON: Final = "The call failed and did not say why."
WAITING: Final = "The call was not run: it waits for a person's approval."
NOT_RUN: Final = f"{INTERRUPTED}: the call was not run."
ONLY_READ: Final = f"{INTERRUPTED}. The call may have run, but it changes nothing: it is safe to repeat."
MAY_HAVE_RUN: Final = (
    "The call may have run: its outcome is unknown. Do not repeat it before you know what it did, or the "
    "user asks for it."
)
_DECIDED: Final = {
    "mark_done": "{who} found out that it was done.",
    "mark_not_done": "{who} found out that it was not done, and nothing happened.",
    "abandon": "{who} decided to leave it at that.",
    "retry": "{who} decided that it may be tried again.",
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result that the model reads; ``failed`` flags it as an error."""

    text: str
    failed: bool = True


def verdict(part: PartEntry) -> Verdict:
    """What became of the call; always something, whatever state it is in."""
    if part.state == "completed":
        return Verdict(text=part.output if part.output.strip() else NO_OUTPUT, failed=False)
    if part.unknown:
        return _unknown(part)
    if part.state != "error":
        return _unfinished(part)
    if part.error == INTERRUPTED:
        return Verdict(text=ONLY_READ if part.entered and part.effect == "read" else NOT_RUN)
    return Verdict(text=_with_reason(part.error.strip() or NO_REASON, part.decision))


def _unfinished(part: PartEntry) -> Verdict:
    """Nobody said yet how it ended; what was entered may have run."""
    if part.state == "running" or part.hosted:
        return Verdict(text=MAY_HAVE_RUN)
    return Verdict(text=WAITING if part.approval == "waiting" else NOT_RUN)


def _unknown(part: PartEntry) -> Verdict:
    error = _sentence(part.error) or f"{INTERRUPTED}."
    decision = part.decision
    if decision is None or decision.action not in _DECIDED:
        return Verdict(text=f"{error} {MAY_HAVE_RUN}")
    who = "The policy of this site" if decision.policy else "A person"
    decided = _with_reason(_DECIDED[decision.action].format(who=who), decision)
    match decision.action:
        case "mark_done":
            return Verdict(text=f"{error} {decided}{_result(decision)}", failed=False)
        case "mark_not_done":
            return Verdict(text=f"{error} {decided}")
        case _:
            return Verdict(text=f"{error} {MAY_HAVE_RUN} {decided}")


def _with_reason(text: str, decision: Decision | None) -> str:
    reason = "" if decision is None or decision.reason is None else decision.reason.strip()
    return f"{text} Reason given: {reason}" if reason else text


def _result(decision: Decision) -> str:
    result = decision.result
    if result is None:
        return ""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return f"\nIts result: {text}" if text.strip() else ""


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."
