"""The edge where a provider's text enters: what cannot be stored is dropped here, once."""

import math
from typing import Final

from pydantic import JsonValue

from schema import text

DEEPEST: Final = 100
"""How deep what goes back may nest: events and databases each end somewhere beyond."""


class Scrubber:
    """Cleans one text that arrives in fragments; a pair that was cut between two fragments is joined."""

    def __init__(self) -> None:
        self._held = ""
        self._has_dropped = False

    @property
    def has_altered(self) -> bool:
        """Whether the clean text differs from what arrived, so that a signature over it is void."""
        return self._has_dropped or bool(self._held)

    def feed(self, fragment: str) -> str:
        """The clean text of this fragment, with what was held back before; may be empty."""
        arrived = self._held + fragment
        self._held = arrived[-1:] if "\ud800" <= arrived[-1:] <= "\udbff" else ""
        arrived = arrived.removesuffix(self._held)
        clean = text.clean(arrived)
        if clean != arrived and not _is_same_once_joined(clean, arrived):
            self._has_dropped = True
        return clean


def _is_same_once_joined(clean: str, arrived: str) -> bool:
    """In UTF-16 a pair reads the same whether it was one character or two halves."""
    return clean.encode("utf-16-le") == arrived.encode("utf-16-le", "surrogatepass")


def is_storable(value: JsonValue, *, depth: int = 0) -> bool:
    """Whether it can be kept exactly as it came; what would have to be cleaned cannot be sent back."""
    if depth > DEEPEST:
        return False
    if isinstance(value, str):
        return text.clean(value) == value
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(is_storable(each, depth=depth + 1) for each in value)
    if isinstance(value, dict):
        return all(
            text.clean(name) == name and is_storable(each, depth=depth + 1) for name, each in value.items()
        )
    return True
