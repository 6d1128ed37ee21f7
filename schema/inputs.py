"""What callers admit: a prompt with an id, a delivery and an origin."""

import hashlib
from typing import Literal

Delivery = Literal["steer", "queue"]
Origin = Literal["user", "recovery", "retry", "system"]
PromptState = Literal["pending", "promoted", "withdrawn"]


def content_digest(text: str) -> str:
    """SHA-256 (hex) of the canonical content: the cleaned text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
