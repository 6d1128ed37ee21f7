"""The port of a tool: what it declares, how it is entered, and how its end is told."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

from schema.events import Effect
from schema.turns import ToolDefinition

DEFAULT_TIMEOUT_SECONDS: Final = 60.0

Input = dict[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool is told about the call that entered it."""

    session_id: str
    call_id: str
    """Our identity of the call (the part's id); unique, and the same after a crash."""
    idempotency_key: str
    """Stable for the call: a tool that speaks to a service which deduplicates sends it along."""
    progress: Callable[[str], None]
    """Show a line of progress; may be called from any thread, at any rate, and never blocks."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a tool returned. Text is cleaned and bounded later; bytes are stored and linked, never inlined."""

    content: str | bytes
    is_error: bool = False
    """The tool ran to its end and says that it failed: known, and told to the model as an error."""
    whole: bytes | None = None
    """The whole answer, when the text names parts of it that are no text; stored and linked."""


INTERRUPTED: Final = "Tool execution interrupted"
"""How a call ends that was entered, or was to be, and has no result of its own."""


class OutcomeUnknown(Exception):
    """The tool was entered and cannot tell whether it had its effect; the text says why, for the log.

    Raised when what it asked may have reached the other side and no answer came back.
    """


class BadArguments(Exception):
    """The arguments do not fit the tool's schema. Nothing was entered; the text is for the model."""


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """What a tool found out about an earlier call of unknown outcome."""

    happened: Literal["yes", "no", "cannot_tell"]
    output: str = ""


Enter = Callable[[Input, ToolContext], Awaitable[Output]]
Reconcile = Callable[[Input, ToolContext], Awaitable[Reconciled]]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as it is registered.

    ``enter`` runs the function: it may have its effect from the moment it is awaited. It raises nothing
    but CancelledError and OutcomeUnknown: what else the function raises becomes an Output with ``is_error``.
    Cancelling it ends an async function; a sync one goes on in its thread and its result is dropped.
    """

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    effect: Effect
    normalise: Callable[[Input], Input]
    """The input as it will be entered (defaults filled in). Raises BadArguments."""
    enter: Enter
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    annotations: Mapping[str, JsonValue] | None = None
    """What the server said of it, stored with each call."""
    reconcile: Reconcile | None = None

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self.name, description=self.description, parameters=dict(self.parameters))


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """The tools of one moment. A step keeps the set it offered, whatever changes meanwhile."""

    tools: Mapping[str, Tool]
    fault: str = ""
    """Why there are none, in one line for people: the settings name something that cannot be offered."""

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def missing(self, name: str) -> str:
        """Why a call of that name cannot be run, for the model."""
        return self.fault or f"Unknown tool: {name}"
