"""Messages and parts: the transcript's vocabulary."""

from typing import Literal

MessageType = Literal[
    "user",
    "synthetic",
    "system",
    "assistant",
    "compaction",
    "agent-switched",
    "model-switched",
    "shell",
]
MessageState = Literal["running", "waiting", "completed", "failed", "interrupted", "unknown"]
PartKind = Literal["text", "reasoning", "tool"]
PartState = Literal["open", "pending", "running", "completed", "error"]
