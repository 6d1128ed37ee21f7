"""A lowered history: the neutral turns that every wire format is encoded from."""

from typing import Literal

from pydantic import Field, JsonValue

from schema.base import Contract


class TextBlock(Contract):
    kind: Literal["text"] = "text"
    text: str
    replay: dict[str, JsonValue] = Field(default_factory=dict)
    """What the provider wants back with it, if this model wrote it."""


class ReasoningBlock(Contract):
    """Reasoning that may be sent back: complete, and signed for the model that is asked again."""

    kind: Literal["reasoning"] = "reasoning"
    text: str
    replay: dict[str, JsonValue] = Field(default_factory=dict)
    """What the provider wants back byte by byte (signature, encrypted content, item id)."""


class HostedResult(Contract):
    """What a call returned that the provider ran itself; it stands beside its call."""

    output: str
    replay: dict[str, JsonValue] = Field(default_factory=dict)
    """The result as the provider wants it back."""


class CallBlock(Contract):
    """A tool call of the assistant; ``call_id`` is unique in its history.

    A local call is answered by a ResultTurn. A hosted one holds its result, and is there only if it has one.
    """

    kind: Literal["call"] = "call"
    call_id: str
    name: str
    input: dict[str, JsonValue]
    hosted: bool = False
    result: HostedResult | None = None
    replay: dict[str, JsonValue] = Field(default_factory=dict)


AssistantBlock = TextBlock | ReasoningBlock | CallBlock


class UserTurn(Contract):
    """What the model reads as the user: a prompt, or words of ours (continuation, notice)."""

    role: Literal["user"] = "user"
    origin: Literal["user", "recovery", "retry", "system", "notice"] = "user"
    text: str


class AssistantTurn(Contract):
    role: Literal["assistant"] = "assistant"
    blocks: tuple[AssistantBlock, ...]


class ResultTurn(Contract):
    """The result of one local call, in the turn right after the assistant that made it."""

    role: Literal["result"] = "result"
    call_id: str
    name: str
    output: str
    failed: bool = False


Turn = UserTurn | AssistantTurn | ResultTurn


class ToolDefinition(Contract):
    """A tool as the model is offered it."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
