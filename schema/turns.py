"""A lowered history: the neutral turns that every wire format is encoded from."""

from typing import Literal

from pydantic import JsonValue

from schema.base import Contract


class TextBlock(Contract):
    kind: Literal["text"] = "text"
    text: str


class ReasoningBlock(Contract):
    """Reasoning that may be sent back: complete, and signed for the model that is asked again."""

    kind: Literal["reasoning"] = "reasoning"
    text: str
    replay: dict[str, JsonValue] = {}
    """What the provider wants back byte by byte (signature, encrypted content, item id)."""


class CallBlock(Contract):
    """A tool call of the assistant."""

    kind: Literal["call"] = "call"
    call_id: str
    name: str
    input: dict[str, JsonValue]
    hosted: bool = False
    replay: dict[str, JsonValue] = {}


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
