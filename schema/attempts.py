"""One physical request to a provider: its states, and what is proved about its end."""

from typing import Literal

from pydantic import JsonValue

from schema.base import Contract

Purpose = Literal["step", "title", "summary", "test"]
AttemptState = Literal["prepared", "dispatched", "streaming", "settled", "unknown"]
Outcome = Literal["completed", "failed", "interrupted", "not_sent"]

ErrorClass = Literal["not_sent", "rejected", "failed", "ambiguous", "partial"]
"""What is proved of an attempt that did not complete (design section 9)."""

Reason = Literal[
    "network",
    "timeout",
    "cut",
    "rate_limit",
    "overloaded",
    "quota",
    "auth",
    "overflow",
    "content_filter",
    "empty",
    "bad_request",
    "bad_response",
    "configuration",
    "provider_error",
    "crash",
    "shutdown",
    "interrupted",
]
"""Why, for people and for the retry rule; never for deciding whether a request may have happened."""


class Usage(Contract):
    """Tokens of one attempt as the provider reported them; a count it did not report is absent."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost: float | None = None
    """US dollars: as the provider told it, else by the prices the site had for the model at that time."""


class AttemptError(Contract):
    """What went wrong, in words that may be shown: secrets are stripped before it is made."""

    error_class: ErrorClass
    reason: Reason
    message: str
    code: str | None = None
    status: int | None = None
    retry_after: float | None = None


class StepError(Contract):
    """Why a step ended without completing; ``error_class`` is absent when no request was involved."""

    reason: Reason
    message: str
    error_class: ErrorClass | None = None
    code: str | None = None


class Decision(Contract):
    """What a person or a stated policy chose for an unknown outcome or a waiting call."""

    action: Literal["abandon", "retry", "mark_done", "mark_not_done", "approve", "deny"]
    by: str
    policy: bool
    at: str
    reason: str | None = None
    result: JsonValue = None
