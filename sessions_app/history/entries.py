"""A transcript as lowering reads it: plain values, no rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from schema.attempts import Decision
from schema.inputs import Origin


@dataclass(frozen=True, kw_only=True)
class PartEntry:
    """One part of an assistant message. ``complete`` is false for text and reasoning that was cut."""

    kind: str
    text: str = ""
    complete: bool = False
    replay: Mapping[str, JsonValue] | None = None

    call_id: str = ""
    name: str = ""
    raw_input: str = ""
    input: Mapping[str, JsonValue] | None = None
    """What was asked for or entered; None until somebody decided that the arguments are good."""
    state: str = ""
    hosted: bool = False
    effect: str = ""
    approval: str = ""
    entered: bool = False
    unknown: bool = False
    output: str = ""
    error: str = ""
    decision: Decision | None = None


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
