"""What was used and what it cost, in words."""

from collections.abc import Mapping
from typing import Any

from sessions_app.models import Session

BILLED = "may have been billed"


def of_attempt(ending: Mapping[str, Any]) -> str:
    """What an attempt used, from the data of the event that ended it; empty when there is nothing to say."""
    usage = ending.get("usage")
    if usage:
        return _used(usage.get("input_tokens"), usage.get("output_tokens"), usage.get("cost"))
    if not ending.get("may_be_billed", True):
        return ""
    return "its usage was not told" if ending.get("outcome") == "completed" else BILLED


def of_session(session: Session) -> str:
    """The totals of a chat, and what they leave out."""
    cost = None if session.cost is None else float(session.cost)
    said = [_used(session.input_tokens, session.output_tokens, cost)]
    if session.uncounted_attempts == 1:
        said.append(f"1 more attempt {BILLED}, and its usage is not known")
    elif session.uncounted_attempts > 1:
        said.append(f"{session.uncounted_attempts} more attempts {BILLED}, and their usage is not known")
    return "; ".join(said)


def dollars(cost: float) -> str:
    """To the cent, and small sums to their first digits that tell something."""
    if cost >= 1 or cost == 0:
        return f"${cost:,.2f}"
    return f"${cost:.10f}".rstrip("0") if cost < 0.0001 else f"${cost:.4f}"


def _used(read: int | None, written: int | None, cost: float | None) -> str:
    counts = ((read, "in"), (written, "out"))
    said = ", ".join(f"{count:,} tokens {way}" for count, way in counts if count is not None)
    return " · ".join(filter(None, (said, "" if cost is None else dollars(cost))))
