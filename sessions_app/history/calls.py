"""How calls go back to a model: with their arguments, or as words where those would be a guess. Pure."""

from typing import Final

from pydantic import JsonValue

from sessions_app.history.entries import PartEntry
from sessions_app.tools import arguments
from sessions_app.tools.port import INTERRUPTED

LONGEST_RAW: Final = 2000


class CallIds:
    """Gives every call of a history an id that no other one has, in the order of the calls.

    Models repeat ids across answers and within one, and some give none. The first call with an id keeps
    it. An id depends only on the calls before it, so that a history that grows keeps those it has.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        given = call_id if call_id.strip() else "call"
        unique = given
        while unique in self._taken:
            self._repeats[given] = self._repeats.get(given, 1) + 1
            unique = f"{given}_{self._repeats[given]}"
        self._taken.add(unique)
        return unique


def is_planned(part: PartEntry) -> bool:
    """Whether the arguments were judged, which happens once the whole answer is there."""
    is_entered = part.state in ("running", "completed")
    return is_entered or part.input is not None or part.error not in ("", INTERRUPTED)


def is_cut(part: PartEntry) -> bool:
    """Whether the answer broke off before the arguments were whole. Such a call was never made."""
    if is_planned(part):
        return False
    return not part.raw_input.strip() or arguments.parse(part.raw_input) is None


def given(part: PartEntry) -> dict[str, JsonValue]:
    """The arguments; empty for those that are no JSON object, which the result then quotes."""
    if part.input is not None:
        return dict(part.input)
    return arguments.parse(part.raw_input) or {}


def quoted(part: PartEntry) -> str:
    """Arguments that cannot stand in the call itself, as the model wrote them; empty for those that can."""
    if part.input is not None or arguments.parse(part.raw_input) is not None:
        return ""
    return f"\nThe arguments were: {part.raw_input[:LONGEST_RAW]}"
