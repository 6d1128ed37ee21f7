"""A transcript as lowering reads it: plain values, no rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from schema.inputs import Origin


@dataclass(frozen=True, kw_only=True)
class PartEntry:
    """One part of an assistant message. ``complete`` is false for what was cut."""

    kind: str
    text: str
    complete: bool
    replay: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One message of the transcript."""

    type: str
    state: str
    origin: Origin = "system"
    text: str = ""
    model: str = ""
    notice: str = ""
    parts: tuple[PartEntry, ...] = ()
