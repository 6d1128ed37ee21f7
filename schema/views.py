"""What callers of the API are given: the shapes of contract section 3."""

from typing import Annotated, Final, Literal

from pydantic import Field, GetJsonSchemaHandler, JsonValue, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from schema.attempts import (
    AttemptError,
    AttemptState,
    Decision,
    ErrorClass,
    Outcome,
    Purpose,
    StepError,
    Usage,
)
from schema.base import Contract
from schema.events import MANIFEST, Effect, EventData, RecoveryFound, RecoveryPolicy
from schema.inputs import Delivery, Origin, PromptState
from schema.status import Status

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339, UTC."""


class Problem(Contract):
    """Why something was refused (RFC 9457). ``code`` is stable; ``errors`` names the fields that cannot be
    used, ``decision`` is the one that was made before."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: dict[str, list[str]] | None = None
    decision: Decision | None = None


class Me(Contract):
    username: str
    is_staff: bool


class Tokens(Contract):
    """What the models of a session used so far.

    ``cost`` is in US dollars, of the attempts whose cost is known. ``uncounted_attempts`` may have been
    billed too, and nobody told for what.
    """

    input_tokens: int
    output_tokens: int
    cost: float | None
    uncounted_attempts: int


class SessionRow(Contract):
    """``staged_revert`` is the message from which on the transcript is about to be hidden."""

    id: str
    title: str
    agent: str
    model: str
    recovery_policy: RecoveryPolicy | None
    archived: bool
    pinned: bool
    staged_revert: str | None
    created_at: Time
    active_at: Time
    head_seq: int
    usage: Tokens


class Session(SessionRow):
    """A session and what it is doing."""

    status: Status


class Prompt(Contract):
    """An admitted input; ``promoted`` means that it is part of the transcript."""

    id: str
    session: str
    text: str
    delivery: Delivery
    origin: Origin
    state: PromptState
    wake: bool
    admitted_seq: int
    promoted_seq: int | None
    created_at: Time


class TextPart(Contract):
    id: str
    index: int
    kind: Literal["text", "reasoning"]
    state: Literal["open", "completed"]
    text: str


class ToolPart(Contract):
    """A call of a tool. ``unknown``: it was entered, and whether it had its effect is not known."""

    id: str
    index: int
    kind: Literal["tool"]
    call_id: str
    name: str
    input: dict[str, JsonValue] | None
    raw_input: str
    effect: Effect | None
    hosted: bool
    state: Literal["pending", "running", "completed", "error"]
    approval: Literal["waiting", "approved", "denied"] | None
    approval_reason: str | None
    earlier: str | None
    unknown: bool
    progress: str | None
    output: str | None
    overflow: str | None
    error: str | None
    decision: Decision | None
    can_be_asked: bool
    """Whether its outcome is unknown and undecided, and its tool may know it."""
    text: Literal[""]


Part = Annotated[TextPart | ToolPart, Field(discriminator="kind")]


class ToolCall(ToolPart):
    """A tool part with where it belongs."""

    session: str
    message: str


class Message(Contract):
    """One entry of the transcript. Only a message of an assistant has parts and attempts."""

    id: str
    seq: int
    type: Literal[
        "user",
        "synthetic",
        "system",
        "assistant",
        "compaction",
        "agent-switched",
        "model-switched",
        "shell",
    ]
    state: Literal["running", "waiting", "completed", "failed", "interrupted", "unknown"]
    created_at: Time
    completed_at: Time | None
    text: str | None
    model: str | None
    agent: str | None
    finish: str | None
    error: StepError | None
    notice: str | None
    usage: Usage | None
    attempts: list[str]
    parts: list[Part]


class Attempt(Contract):
    """One physical request to a provider. ``unknown``: bytes may have left and no end came back."""

    id: str
    session: str
    message: str | None
    purpose: Purpose
    ordinal: int
    provider: str
    model: str
    state: AttemptState
    outcome: Outcome | None
    finish: str | None
    error_class: ErrorClass | None
    error: AttemptError | None
    request_digest: str
    client_request_id: str
    provider_request_id: str | None
    provider_response_id: str | None
    may_be_billed: bool
    usage: Usage | None
    prepared_at: Time
    dispatched_at: Time | None
    headers_at: Time | None
    first_output_at: Time | None
    settled_at: Time | None
    unknown_at: Time | None
    decision: Decision | None
    can_be_asked: bool
    """Whether its outcome is unknown and its provider may know it."""


class Fact(Contract):
    at: Time
    fact: Literal[
        "prepared", "dispatched", "response_started", "first_output", "settled", "unknown", "decided"
    ]
    detail: dict[str, JsonValue]


class AttemptWithFacts(Attempt):
    """An attempt with what became durable of it, in order."""

    facts: list[Fact]


class Claim(Contract):
    """One recovery of one loss of an owner."""

    id: str
    session: str
    boundary_seq: int
    lost_fence: int
    lost_owner: str | None
    worker: str | None
    death: Literal["proved", "assumed", "own", "none"] | None
    outcome: Literal["continued", "resumed", "held", "parked", "closed"]
    found: RecoveryFound
    continuation: str | None
    created_at: Time


class Event(Contract):
    """One durable fact. Its type and version say what ``data`` holds: one of the shapes below."""

    seq: int
    type: str
    version: int
    time: Time
    data: dict[str, JsonValue]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        choices = [handler(kind.__pydantic_core_schema__) for kind in PUBLISHED]
        return {"title": "Event", "description": cls.__doc__ or "", "anyOf": choices}


def _published(kind: type[EventData]) -> type[Contract]:
    """The whole event of one type and version."""
    return create_model(  # type: ignore[call-overload,no-any-return]  # literals that are made while it runs
        f"{kind.__name__}Event",
        __base__=Contract,
        __doc__=kind.__doc__,
        seq=int,
        type=Literal[kind.type],
        version=Literal[kind.version],
        time=Time,
        data=kind,
    )


PUBLISHED: Final = tuple(_published(kind) for kind in MANIFEST)


class Model(Contract):
    """A model that can be chosen; one that is not configured lacks its key.

    ``prices`` are US dollars per million tokens: input, output, and cache_read and cache_write where they
    differ from input.
    """

    name: str
    label: str
    configured: bool
    tools: bool
    context_tokens: int | None
    max_output_tokens: int | None
    prices: dict[str, float] | None


class Agent(Contract):
    name: str
    model: str


class Ticket(Contract):
    """Opens ``/ws/sessions/{id}?ticket=...`` until it expires."""

    ticket: str
    expires: Time


class Resumed(Contract):
    resumed: bool
    status: Status


class Interrupted(Contract):
    """``interrupted`` is false when nothing ran."""

    interrupted: bool
    status: Status


class Page(Contract):
    """``next`` is the cursor of the following page; null on the last one."""

    next: str | None


class SessionPage(Page):
    results: list[Session]


class PromptPage(Page):
    results: list[Prompt]


class MessagePage(Page):
    results: list[Message]


class AttemptPage(Page):
    results: list[Attempt]


class ToolCallPage(Page):
    results: list[ToolCall]


class ClaimPage(Page):
    results: list[Claim]


class ModelPage(Page):
    results: list[Model]


class AgentPage(Page):
    results: list[Agent]


class EventPage(Contract):
    """Ask again with ``after`` = ``next_after`` until that is ``head_seq``."""

    results: list[Event]
    next_after: int
    head_seq: int


class ExportedMessage(Message):
    reverted_seq: int | None


class ExportedClaim(Contract):
    """As its event tells it."""

    seq: int
    at: Time
    claim: str
    worker: str | None = None
    boundary: int
    lost_fence: int
    lost_owner: str | None = None
    death: str
    outcome: str
    found: RecoveryFound
    continuation: str | None = None


class ExportedNote(Contract):
    name: str
    text: str
    updated_at: Time


class ExportedOverflow(Contract):
    """The whole output of a call that holds only its beginning."""

    id: str
    is_text: bool
    created_at: Time
    base64: str


class Export(Contract):
    """A session with nothing left out, hidden messages included."""

    format: Literal["holdfast-session"]
    version: Literal[1]
    exported_at: Time
    session: SessionRow
    events: list[Event]
    prompts: list[Prompt]
    messages: list[ExportedMessage]
    attempts: list[AttemptWithFacts]
    claims: list[ExportedClaim]
    notes: list[ExportedNote]
    overflows: list[ExportedOverflow]
