"""The port every provider implements: one request in, a stream of items out, phases told as they happen."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from schema.attempts import AttemptError, Usage
from schema.ids import AttemptId
from schema.turns import ToolDefinition, Turn


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """All that one physical request is made from. The same request always gives the same body."""

    attempt: AttemptId
    """Sent as the client request id; it names the request, it does not deduplicate it."""
    model: str
    """The name behind the colon of ``provider:model``."""
    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    hosted_tools: tuple[Mapping[str, JsonValue], ...] = ()
    """Tools that the provider may run itself, as its API takes them."""
    max_output_tokens: int | None = None
    earlier_attempts: int = 0
    """How many attempts were already made for the newest user prompt (the scripted demo counts by it)."""


@dataclass(frozen=True)
class TextDelta:
    """A fragment of answer text. Fragments with one key are one part; a new key opens a new part."""

    key: str
    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    key: str
    text: str


@dataclass(frozen=True)
class PartClosed:
    """The part with this key is complete. ``replay`` is what the provider wants sent back with it."""

    key: str
    replay: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class CallStarted:
    """The model began a tool call; its arguments follow as fragments under the same key."""

    key: str
    call_id: str
    name: str
    hosted: bool = False


@dataclass(frozen=True)
class CallDelta:
    key: str
    arguments: str


@dataclass(frozen=True)
class CallResult:
    """The provider ran a hosted call and tells its result; ``replay`` is the result as it wants it back."""

    key: str
    output: str
    is_error: bool = False
    replay: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class ResponseIdentified:
    """The provider named its response in the body (``resp_...``, ``msg_...``, ``chatcmpl-...``)."""

    response_id: str


@dataclass(frozen=True)
class UsageNoted:
    """What the provider has counted so far; it stands if the answer does not complete."""

    usage: Usage


@dataclass(frozen=True)
class Finished:
    """The terminal marker arrived: the attempt is completed. Always the last item, exactly once.

    ``finish`` is one of stop, length, tool_calls, content_filter, paused (the provider wants to be asked to go
    on), missing, other.
    """

    finish: str
    usage: Usage | None = None


Item = (
    TextDelta
    | ReasoningDelta
    | PartClosed
    | CallStarted
    | CallDelta
    | CallResult
    | ResponseIdentified
    | UsageNoted
    | Finished
)


class Phases(Protocol):
    """Told by the provider, awaited by it: what happens on the wire, at the moment it happens."""

    async def dispatching(self) -> None:
        """Awaited immediately before the first byte of the request leaves, after the connection stands.

        It commits the fact. If it raises, nothing may be sent.
        """

    async def response_started(
        self, *, status: int, request_id: str | None, headers: Mapping[str, str]
    ) -> None:
        """Awaited when response headers arrived, before any of the body is read."""


class ProviderError(Exception):
    """The attempt did not complete. ``error.error_class`` says what is proved about it."""

    def __init__(self, error: AttemptError, *, usage: Usage | None = None) -> None:
        self.error = error
        self.usage = usage
        super().__init__(f"{error.error_class}: {error.message}")


class Provider(Protocol):
    """One wire format at one base URL (or the scripted demo)."""

    name: str

    def digest(self, request: ModelRequest) -> str:
        """SHA-256 (hex) of exactly the body that ``stream`` will send, without sending it."""

    def stream(self, request: ModelRequest, phases: Phases) -> AsyncIterator[Item]:
        """Send one physical request and yield what comes back.

        Ends after one ``Finished``, or raises ``ProviderError``. Closing the iterator or cancelling the
        task closes the connection at once. Never retries, never follows a redirect.
        """


class Forgotten(Exception):
    """The provider knows nothing of the response, or not any more."""


class CannotTell(Exception):
    """The provider could not be asked, or cannot tell yet; asking again later may."""


@runtime_checkable
class Askable(Protocol):
    """A provider that keeps its responses and can be asked for them by their id."""

    def ask(self, response_id: str, *, follow: bool) -> AsyncIterator[Item]:
        """Ask what became of a response, and yield all of it from its beginning, as ``stream`` would have.

        Sends nothing that could start or repeat anything. ``follow`` waits for a response that still runs
        and yields as it grows. Ends after one ``Finished``, or raises ProviderError when the provider says
        that it failed, Forgotten, or CannotTell; what was yielded before stays true.
        """

    async def cancel(self, response_id: str) -> None:
        """Ask the provider to stop; it may have ended, or go on all the same. Raises nothing for that."""
