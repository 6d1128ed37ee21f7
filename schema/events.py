"""The durable facts of a session. Each class is one (type, version); the manifest lists them all.

A published (type, version) never changes its meaning or its fields. A change is a new version beside
the old one, so that every log that was ever written can be read.
"""

from typing import ClassVar, Final, Literal

from pydantic import JsonValue

from schema.attempts import AttemptError, Outcome, Purpose, StepError, Usage
from schema.base import Contract
from schema.inputs import Delivery, Origin

Effect = Literal["read", "idempotent", "side_effect"]
RecoveryPolicy = Literal["continue", "ask", "off"]


class EventData(Contract):
    """What one event carries. Position and time belong to the stored row, not to the data."""

    type: ClassVar[str]
    version: ClassVar[int] = 1


class SessionCreated(EventData):
    type = "session.created"
    title: str
    agent: str
    model: str
    recovery_policy: RecoveryPolicy | None = None


class SessionUpdated(EventData):
    """Only what changed is present. An empty recovery policy means: back to the agent's or the site's."""

    type = "session.updated"
    title: str | None = None
    archived: bool | None = None
    pinned: bool | None = None
    recovery_policy: RecoveryPolicy | Literal[""] | None = None


class SessionPaused(EventData):
    """What was pending up to this event waits until a prompt or a resume."""

    type = "session.paused"
    reason: Literal["user", "recovery"]


class SessionUnpaused(EventData):
    type = "session.unpaused"
    reason: Literal["prompt", "resume"]


class PromptAdmitted(EventData):
    type = "prompt.admitted"
    message: str
    text: str
    digest: str
    delivery: Delivery
    origin: Origin
    wake: bool


class PromptPromoted(EventData):
    type = "prompt.promoted"
    message: str


class PromptWithdrawn(EventData):
    type = "prompt.withdrawn"
    message: str


class PromptDeliveryChanged(EventData):
    type = "prompt.delivery_changed"
    message: str
    delivery: Delivery


class AgentSwitched(EventData):
    type = "agent.switched"
    message: str
    agent: str


class ModelSwitched(EventData):
    type = "model.switched"
    message: str
    model: str


class StepStarted(EventData):
    """A new assistant message is open. Whatever older one was still open stays closed for ever."""

    type = "step.started"
    message: str
    agent: str
    model: str
    step: int


class StepEnded(EventData):
    type = "step.ended"
    message: str
    finish: str
    usage: Usage | None = None


class StepFailed(EventData):
    """The message is closed without completion; ``notice`` says that its model must be told."""

    type = "step.failed"
    message: str
    outcome: Literal["failed", "interrupted", "unknown"]
    error: StepError
    notice: str | None = None
    usage: Usage | None = None


class TextStarted(EventData):
    type = "text.started"
    message: str
    part: str
    index: int


class TextEnded(EventData):
    type = "text.ended"
    message: str
    part: str
    text: str
    replay: dict[str, JsonValue] | None = None


class ReasoningStarted(EventData):
    type = "reasoning.started"
    message: str
    part: str
    index: int


class ReasoningEnded(EventData):
    """``replay`` is what the provider wants back; ``complete`` is false for a part that was cut."""

    type = "reasoning.ended"
    message: str
    part: str
    text: str
    complete: bool
    replay: dict[str, JsonValue] | None = None


class ToolInputStarted(EventData):
    """The model began a call. ``hosted`` calls are run by the provider, never by us."""

    type = "tool.input.started"
    message: str
    part: str
    index: int
    call_id: str
    name: str
    hosted: bool = False


class ToolInputEnded(EventData):
    """The arguments as they arrived; ``replay`` is what the provider wants back with the call."""

    type = "tool.input.ended"
    message: str
    part: str
    raw: str
    replay: dict[str, JsonValue] | None = None


class ToolApprovalRequested(EventData):
    """The call waits for a person. ``earlier`` is the unknown call that it would repeat."""

    type = "tool.approval_requested"
    message: str
    part: str
    input: dict[str, JsonValue]
    input_digest: str
    effect: Effect
    because: Literal["agent", "duplicate"]
    earlier: str | None = None


class ToolApprovalDecided(EventData):
    type = "tool.approval_decided"
    message: str
    part: str
    action: Literal["approve", "deny"]
    by: str
    reason: str | None = None


class ToolCalled(EventData):
    """The function is about to be entered (or, hosted, the provider runs it): it may have an effect from here on."""

    type = "tool.called"
    message: str
    part: str
    input: dict[str, JsonValue]
    input_digest: str
    effect: Effect
    annotations: dict[str, JsonValue] | None = None


class ToolProgress(EventData):
    type = "tool.progress"
    message: str
    part: str
    text: str


class ToolSucceeded(EventData):
    """``overflow`` names the stored rest of an output that was too long to keep here."""

    type = "tool.succeeded"
    message: str
    part: str
    output: str
    overflow: str | None = None
    replay: dict[str, JsonValue] | None = None


class ToolFailed(EventData):
    """``unknown``: it was entered, and whether it had its effect is not known."""

    type = "tool.failed"
    message: str
    part: str
    error: str
    unknown: bool


class ToolDecided(EventData):
    """What a person or a policy chose for a call with an unknown outcome; its state stays."""

    type = "tool.decided"
    message: str
    part: str
    action: Literal["mark_done", "mark_not_done", "abandon", "retry"]
    by: str
    policy: bool
    reason: str | None = None
    result: JsonValue = None


class RetryScheduled(EventData):
    """The same step is asked again by a new attempt, not before ``at`` (RFC 3339)."""

    type = "retry.scheduled"
    message: str
    attempt: int
    at: str
    reason: str


class AttemptPrepared(EventData):
    type = "attempt.prepared"
    attempt: str
    message: str | None = None
    purpose: Purpose
    ordinal: int
    provider: str
    model: str
    request_digest: str
    hosted_tools: bool = False


class AttemptDispatched(EventData):
    type = "attempt.dispatched"
    attempt: str
    message: str | None = None


class AttemptResponseStarted(EventData):
    """Headers arrived, at that time; the event may be stored a moment later, with the first output."""

    type = "attempt.response_started"
    attempt: str
    message: str | None = None
    status: int
    provider_request_id: str | None = None
    at: str | None = None


class AttemptIdentified(EventData):
    """The provider named its response, by which it can be asked for it later."""

    type = "attempt.identified"
    attempt: str
    message: str | None = None
    provider_response_id: str


class AttemptFirstOutput(EventData):
    type = "attempt.first_output"
    attempt: str
    message: str | None = None
    provider_response_id: str | None = None


class AttemptSettled(EventData):
    type = "attempt.settled"
    attempt: str
    message: str | None = None
    outcome: Outcome
    finish: str | None = None
    error: AttemptError | None = None
    usage: Usage | None = None
    provider_response_id: str | None = None
    may_be_billed: bool


class AttemptUnknown(EventData):
    type = "attempt.unknown"
    attempt: str
    message: str | None = None
    error: AttemptError
    usage: Usage | None = None
    provider_response_id: str | None = None


class AttemptAsked(EventData):
    """The provider was asked about an unknown attempt, and could not tell: the unknown stands."""

    type = "attempt.asked"
    attempt: str
    message: str | None = None
    answer: Literal["forgotten", "cannot_tell"]
    detail: str


class AttemptResumed(EventData):
    """The provider was asked about an unknown attempt, and tells: its message is open again.

    What is told follows as parts that replace those there were, unless these are kept.
    """

    type = "attempt.resumed"
    attempt: str
    message: str
    keeps_parts: bool


class AttemptDecided(EventData):
    """What a person or a policy chose for an attempt with an unknown outcome; its state stays."""

    type = "attempt.decided"
    attempt: str
    message: str | None = None
    action: Literal["abandon", "retry"]
    by: str
    policy: bool
    reason: str | None = None


class RecoveryFound(Contract):
    """How much was unfinished when an orphan was claimed."""

    attempts: int
    tools: int
    parts: int


class RecoveryClaimed(EventData):
    """One recovery of one loss of an owner, exclusive at this boundary. What it settled follows."""

    type = "recovery.claimed"
    claim: str
    worker: str | None = None
    boundary: int
    lost_fence: int
    lost_owner: str | None = None
    death: Literal["proved", "assumed", "own", "none"]
    outcome: Literal["continued", "resumed", "held", "parked", "closed"]
    found: RecoveryFound
    continuation: str | None = None


class RevertStaged(EventData):
    """From this message on the transcript is about to be hidden; a later one replaces it."""

    type = "revert.staged"
    message: str


class RevertCleared(EventData):
    """What was staged is taken back; nothing was hidden."""

    type = "revert.cleared"
    message: str


class RevertCommitted(EventData):
    """The visible messages from this one on are hidden. What they did stays known."""

    type = "revert.committed"
    message: str


class ExecutionInterrupted(EventData):
    type = "execution.interrupted"
    message: str | None = None
    reason: Literal["user", "shutdown", "recovery"]


MANIFEST: Final[tuple[type[EventData], ...]] = (
    SessionCreated,
    SessionUpdated,
    SessionPaused,
    SessionUnpaused,
    PromptAdmitted,
    PromptPromoted,
    PromptWithdrawn,
    PromptDeliveryChanged,
    AgentSwitched,
    ModelSwitched,
    StepStarted,
    StepEnded,
    StepFailed,
    TextStarted,
    TextEnded,
    ReasoningStarted,
    ReasoningEnded,
    ToolInputStarted,
    ToolInputEnded,
    ToolApprovalRequested,
    ToolApprovalDecided,
    ToolCalled,
    ToolProgress,
    ToolSucceeded,
    ToolFailed,
    ToolDecided,
    RetryScheduled,
    AttemptPrepared,
    AttemptDispatched,
    AttemptResponseStarted,
    AttemptIdentified,
    AttemptFirstOutput,
    AttemptSettled,
    AttemptUnknown,
    AttemptAsked,
    AttemptResumed,
    AttemptDecided,
    RecoveryClaimed,
    RevertStaged,
    RevertCleared,
    RevertCommitted,
    ExecutionInterrupted,
)

RESERVED: Final[frozenset[str]] = frozenset(
    {
        "context.updated",
        "compaction.started",
        "compaction.ended",
        "compaction.failed",
        "shell.started",
        "shell.ended",
    }
)
"""Names that are spoken for; nothing else may take them, and no log of this version holds them."""
