"""What is proved about an attempt that did not complete. Pure.

The class follows from what happened on the wire, never from a type of exception: a connection that was
reset looks the same whether the server had read the request or not.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import IntEnum
from typing import Final, Literal

from pydantic import JsonValue

from schema import text
from schema.attempts import AttemptError, ErrorClass, Reason

MAX_RETRY_AFTER: Final = 3600.0
MAX_MESSAGE: Final = 600


class Phase(IntEnum):
    """How far an attempt came on the wire; only ever forward."""

    PREPARED = 0
    CONNECTING = 1
    CONNECTED = 2
    DISPATCHED = 3
    """The fact is durable; from here on bytes may have left."""
    WRITTEN = 4
    HEADERS = 5
    FIRST_EVENT = 6
    FIRST_OUTPUT = 7
    TERMINAL = 8


Break = Literal["unreachable", "timeout", "disconnected", "protocol", "local", "cut", "undecodable"]
"""How an exchange ended without the provider saying so: ``cut`` is a clean end without a terminal marker."""


def broken(*, phase: Phase, kind: Break, detail: str) -> AttemptError:
    """The exchange broke off after this phase."""
    return AttemptError(
        error_class=_class_of_break(phase, kind),
        reason=_reason_of_break(phase, kind),
        message=_message(detail),
    )


def _class_of_break(phase: Phase, kind: Break) -> ErrorClass:
    if phase < Phase.DISPATCHED or (kind == "local" and phase < Phase.WRITTEN):
        return "not_sent"
    return "ambiguous" if phase < Phase.HEADERS else "partial"


def _reason_of_break(phase: Phase, kind: Break) -> Reason:
    reasons: dict[Break, Reason] = {
        "unreachable": "network",
        "timeout": "timeout",
        "disconnected": "network" if phase < Phase.HEADERS else "cut",
        "protocol": "bad_response",
        "local": "configuration",
        "cut": "cut",
        "undecodable": "bad_response",
    }
    return reasons[kind]


@dataclass(frozen=True, kw_only=True)
class Report:
    """An error in the provider's words, whatever shape it came in."""

    message: str = ""
    marks: frozenset[str] = frozenset()
    """Its type and code, in lower case."""
    code: str | None = None
    status: int | None = None

    def says(self, *phrases: str) -> bool:
        message = self.message.lower()
        return any(phrase in message for phrase in phrases)


def report(payload: JsonValue) -> Report:
    """Read an error out of JSON: OpenAI's, Anthropic's, and what others make of them."""
    if isinstance(payload, list):
        return report(payload[0]) if payload else Report()
    if isinstance(payload, str):
        return Report(message=payload)
    if not isinstance(payload, dict):
        return Report()
    inner = payload.get("error")
    if isinstance(inner, str) and inner:
        return Report(message=_first_text(payload, "message") or inner, marks=_marks([inner]))
    return _report_of(inner if isinstance(inner, dict) else payload)


def _report_of(fields: Mapping[str, JsonValue]) -> Report:
    details = fields.get("details")
    nested = details.get("error_code") if isinstance(details, dict) else None
    code = fields.get("code")
    shown = code if code is not None else fields.get("type")
    return Report(
        message=_first_text(fields, "message", "detail", "msg"),
        marks=_marks([fields.get("type"), code, nested]),
        code=str(shown) if isinstance(shown, str | int) else None,
        status=_status(code, fields.get("status_code"), fields.get("status")),
    )


def _first_text(fields: Mapping[str, JsonValue], *names: str) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _marks(values: list[JsonValue]) -> frozenset[str]:
    return frozenset(value.lower() for value in values if isinstance(value, str))


def _status(*values: JsonValue) -> int | None:
    for value in values:
        number = str(value) if isinstance(value, int | str) else ""
        if re.fullmatch(r"[1-5]\d\d", number):
            return int(number)
    return None


_QUOTA: Final = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "enforced_spend_limit_reached",
        "insufficient_credits",
    }
)
_QUOTA_PHRASES: Final = ("check your plan and billing", "credit balance is too low", "insufficient balance")
_RATE_LIMIT: Final = frozenset(
    {"rate_limit_error", "rate_limit_exceeded", "rate_limited", "too_many_requests", "429"}
)
_OVERLOAD: Final = frozenset(
    {"overloaded_error", "overloaded", "slow_down", "server_overloaded", "engine_overloaded", "529"}
)
_OVERLOAD_PHRASES: Final = ("overloaded", "slow down", "at capacity", "over capacity", "server is busy")
_OVERFLOW: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "request_too_large", "context_window_exceeded"}
)
_OVERFLOW_PHRASES: Final = (
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "exceed context limit",
    "reduce the length of the messages",
)
_FILTER: Final = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
_AUTH: Final = frozenset(
    {"authentication_error", "permission_error", "invalid_api_key", "permission_denied", "unauthorized"}
)
_STATUS_REASONS: Final[dict[int, Reason]] = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "configuration",
    405: "configuration",
    408: "timeout",
    413: "overflow",
    422: "bad_request",
    429: "rate_limit",
    499: "timeout",
    503: "overloaded",
    504: "timeout",
    522: "timeout",
    524: "timeout",
    529: "overloaded",
}

_PRECEDES_INFERENCE: Final = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 413, 414, 415, 417, 421, 422, 426, 428, 429, 431, 451}
)
"""Statuses that a server gives instead of starting. 408 and 424 are not among them: gateways answer with
both when a model that had started took too long or failed."""


def _reason(found: Report, status: int | None) -> Reason:
    marked: tuple[tuple[frozenset[str], tuple[str, ...], Reason], ...] = (
        (_QUOTA, _QUOTA_PHRASES, "quota"),
        (_OVERFLOW, _OVERFLOW_PHRASES, "overflow"),
        (_FILTER, (), "content_filter"),
        (_RATE_LIMIT, (), "rate_limit"),
        (_OVERLOAD, (), "overloaded"),
        (_AUTH, (), "auth"),
    )
    for marks, phrases, reason in marked:
        if found.marks & marks or found.says(*phrases):
            return reason
    if status is not None:
        return _STATUS_REASONS.get(status, "bad_request" if 400 <= status < 500 else "provider_error")
    if "invalid_request_error" in found.marks:
        return "bad_request"
    return "provider_error"


def answered(
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    is_own_server: bool,
    now: datetime,
) -> AttemptError:
    """The provider answered with a status that is no success.

    ``headers`` have lower-case names. ``is_own_server`` tells a vendor's own server from one that may stand
    between us and it: what a gateway calls overload may have begun behind it.
    """
    payload = _json(body)
    found = report(payload)
    redirects = 300 <= status < 400
    is_rejected = redirects or status in _PRECEDES_INFERENCE or _refuses_load(status, payload, is_own_server)
    reason: Reason = "configuration" if redirects else _reason(found, status)
    if status == 429 and reason not in ("quota", "rate_limit"):
        reason = "rate_limit"
    return AttemptError(
        error_class="rejected" if is_rejected else "ambiguous",
        reason=reason,
        message=_message(_describe(status, found, body)),
        code=found.code,
        status=status,
        retry_after=retry_after(headers, now=now) if reason in ("rate_limit", "overloaded") else None,
    )


def _refuses_load(status: int, payload: JsonValue, is_own_server: bool) -> bool:
    """Whether the server says itself that it did not even start: too much load, or a model still loading."""
    found = report(payload)
    if not isinstance(payload, dict):
        return status == 529 and payload is None
    if status == 529:
        return True
    if status != 503:
        return False
    explicit = bool(found.marks & _OVERLOAD) or found.says(*_OVERLOAD_PHRASES)
    return (explicit and is_own_server) or ("unavailable_error" in found.marks and found.says("loading"))


def _json(body: bytes) -> JsonValue:
    """The JSON of a body; None for an empty one, and its text where it is no JSON."""
    if not body.strip():
        return None
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
    return value


def _describe(status: int, found: Report, body: bytes) -> str:
    if 300 <= status < 400:
        return f"The server redirects ({status}). Set the base URL to where it points; redirects are not followed."
    if found.message and not body.lstrip().startswith(b"<"):
        return f"The provider answered {status}: {found.message}"
    return f"The provider answered {status} without saying why."


def reported(*, payload: JsonValue, phase: Phase, has_hosted_tools: bool = False) -> AttemptError:
    """The provider said in its stream, after a status of success, that it failed.

    Before any output, an error that names load or rate as its cause is as good as the status for it; not
    where the provider had tools to run itself, which may have done something before it said a word.
    """
    found = report(payload)
    reason = _reason(found, found.status)
    if reason == "provider_error" and found.says("quota"):
        reason = "quota"
    refuses_load = bool(found.marks & (_OVERLOAD | _RATE_LIMIT)) or found.status in (429, 529)
    is_rejected = (
        refuses_load
        and reason in ("overloaded", "rate_limit")
        and phase < Phase.FIRST_OUTPUT
        and not has_hosted_tools
    )
    return AttemptError(
        error_class="rejected" if is_rejected else "failed",
        reason=reason,
        message=_message(found.message or "The provider reported an error without saying which."),
        code=found.code,
    )


def unusable(*, reason: Reason, detail: str) -> AttemptError:
    """The provider completed its answer, and there is nothing in it to use."""
    return AttemptError(error_class="failed", reason=reason, message=_message(detail))


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The delay in seconds that the headers ask for, at most an hour; None if they ask for none."""
    milliseconds = _number(headers.get("retry-after-ms"))
    stated = headers.get("retry-after", "").strip()
    if milliseconds is not None:
        seconds: float | None = milliseconds / 1000
    elif (plain := _number(stated)) is not None:
        seconds = plain
    else:
        seconds = _seconds_until(stated, now=now)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds_until(http_date: str, *, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(http_date)
    except (ValueError, IndexError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()


_KEY_SHAPES: Final = re.compile(
    r"\b(?:sk-|gsk_|xai-|AIza)[A-Za-z0-9_*.\-]{6,}"
    r"|(?i:\bbearer\s+)\S+"
    r"|(?i:\b(?:authorization|x-api-key|api-key)\b[\"']?\s*[:=]\s*)\S+"
)


def shown(error: AttemptError, *, secrets: tuple[str, ...]) -> AttemptError:
    """The error as it may leave: without secrets, or anything shaped like a key, and not too long."""
    message = _redacted(error.message, secrets=secrets)
    code = None if error.code is None else _redacted(text.clean(error.code), secrets=secrets)[:100]
    return error.model_copy(update={"message": _shortened(message), "code": code})


def _redacted(words: str, *, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        if secret:
            words = words.replace(secret, "[secret]")
    return _KEY_SHAPES.sub("[secret]", words)


def _message(words: str) -> str:
    return " ".join(text.clean(words).split())


def _shortened(words: str) -> str:
    return words if len(words) <= MAX_MESSAGE else f"{words[: MAX_MESSAGE - 1]}…"
