"""What callers admit: a prompt with an id, a delivery and an origin."""

import hashlib
from typing import Literal

from schema.base import Contract

Delivery = Literal["steer", "queue"]
Origin = Literal["user", "recovery", "retry", "system"]
PromptState = Literal["pending", "promoted", "withdrawn"]


class PromptView(Contract):
    """A prompt as callers see it (contract section 3, Prompt)."""

    id: str
    session: str
    text: str
    delivery: Delivery
    origin: Origin
    state: PromptState
    wake: bool
    admitted_seq: int
    promoted_seq: int | None
    created_at: str


def content_digest(text: str) -> str:
    """SHA-256 (hex) of the canonical content: the cleaned text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
