"""The shapes of contract section 3, made from rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schema.status import Status
from sessions_app.attempts import asking
from sessions_app.log import StoredEvent
from sessions_app.models import (
    MessagePart,
    PartCheckpoint,
    ProviderAttempt,
    Session,
    SessionInput,
    SessionMessage,
    statements,
)
from sessions_app.tools import reconcile

Shape = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class OpenPart:
    """The text so far of a part that is still written."""

    message: str
    part: str
    text: str


def open_parts(session_id: str) -> list[OpenPart]:
    """The open parts of a session with their checkpoints, in the order they began."""
    where = {"session_id": session_id, "ended_at": None, "state": "open"}
    parts = statements.fetch_columns(MessagePart, ("started_at", "index", "id", "message_id"), where)
    ids = tuple(part.id for part in parts)
    stored = statements.fetch_columns(PartCheckpoint, ("part_id", "text"), {"pk__in": ids}) if ids else []
    texts = {checkpoint.part_id: checkpoint.text for checkpoint in stored}
    return [
        OpenPart(message=part.message_id, part=part.id, text=texts.get(part.id, "")) for part in sorted(parts)
    ]


def text_so_far(part: MessagePart) -> str:
    """The stored text of a closed part, the checkpoint of an open one."""
    if part.ended_at is not None:
        return part.text
    checkpoint = getattr(part, "checkpoint", None)
    return checkpoint.text if checkpoint is not None else ""


def rfc3339(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _maybe(time: datetime | None) -> str | None:
    return None if time is None else rfc3339(time)


def event_shape(event: StoredEvent) -> Shape:
    return dict(event.to_json())


def session_shape(session: Session, status: Status) -> Shape:
    return {
        "id": session.pk,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "recovery_policy": session.recovery_policy or None,
        "archived": session.archived,
        "pinned": session.pinned,
        "staged_revert": session.staged_revert or None,
        "created_at": rfc3339(session.created_at),
        "active_at": rfc3339(session.active_at),
        "head_seq": session.head_seq,
        "status": status.model_dump(mode="json"),
        "usage": usage_shape(session),
    }


def usage_shape(session: Session) -> Shape:
    """The totals of a session. ``cost`` in US dollars is that of the attempts whose cost is known.

    ``uncounted_attempts`` may have been billed too, and nobody told for what.
    """
    return {
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "cost": None if session.cost is None else float(session.cost),
        "uncounted_attempts": session.uncounted_attempts,
    }


def prompt_shape(prompt: SessionInput) -> Shape:
    return {
        "id": prompt.pk,
        "session": prompt.session_id,
        "text": prompt.text,
        "delivery": prompt.delivery,
        "origin": prompt.origin,
        "state": _prompt_state(prompt),
        "wake": prompt.wake,
        "admitted_seq": prompt.admitted_seq,
        "promoted_seq": prompt.promoted_seq,
        "created_at": rfc3339(prompt.created_at),
    }


def _prompt_state(prompt: SessionInput) -> str:
    if prompt.promoted_seq is not None:
        return "promoted"
    return "pending" if prompt.withdrawn_seq is None else "withdrawn"


def message_shapes(messages: Iterable[SessionMessage]) -> list[Shape]:
    return [_message_shape(message) for message in messages]


def _message_shape(message: SessionMessage) -> Shape:
    return {
        "id": message.pk,
        "seq": message.seq,
        "type": message.type,
        "state": _message_state(message),
        "created_at": rfc3339(message.created_at),
        "completed_at": _maybe(message.completed_at),
        "text": message.text if message.type in ("user", "synthetic", "system") else None,
        "model": message.model or None,
        "agent": message.agent or None,
        "finish": message.finish or None,
        "error": message.error,
        "notice": message.notice or None,
        "usage": message.usage,
        "attempts": [attempt.pk for attempt in message.attempts.all()],
        "parts": [_part_shape(part) for part in message.parts.all()],
    }


def _message_state(message: SessionMessage) -> str:
    """``waiting`` is derived: all that is open in the message is a question to a person.

    One that was answered waits for the worker that acts on it: nothing of it runs yet.
    """
    if message.completed_at is not None:
        return message.state
    unfinished = [part for part in message.parts.all() if part.ended_at is None]
    is_waiting = bool(unfinished) and all(
        part.state == "pending" and part.approval != "" for part in unfinished
    )
    return "waiting" if is_waiting else message.state


def _part_shape(part: MessagePart) -> Shape:
    if part.kind == "tool":
        return _call_shape(part)
    return {
        "id": part.pk,
        "index": part.index,
        "kind": part.kind,
        "state": part.state,
        "text": text_so_far(part),
    }


def _call_shape(part: MessagePart) -> Shape:
    return {
        "id": part.pk,
        "index": part.index,
        "kind": "tool",
        "call_id": part.call_id,
        "name": part.name,
        "input": part.input,
        "raw_input": part.raw_input,
        "effect": part.effect or None,
        "hosted": part.hosted,
        "state": part.state,
        "approval": part.approval or None,
        "approval_reason": part.approval_reason or None,
        "earlier": part.earlier or None,
        "unknown": part.unknown_at is not None,
        "progress": part.progress or None,
        "output": part.output if part.state == "completed" else None,
        "overflow": part.overflow or None,
        "error": part.error or None,
        "decision": part.decision,
        "can_be_asked": reconcile.can_be_asked(part),
        "text": "",
    }


def tool_call_shape(part: MessagePart) -> Shape:
    """A tool part by itself, with where it belongs."""
    return {**_call_shape(part), "session": part.session_id, "message": part.message_id}


def attempt_shapes(attempts: Iterable[ProviderAttempt]) -> list[Shape]:
    """The shapes in order; each provider is looked up once."""
    rows = list(attempts)
    askable = asking.askable(rows)
    return [_attempt_shape(row, can_be_asked=row.pk in askable) for row in rows]


def attempt_shape(attempt: ProviderAttempt) -> Shape:
    return attempt_shapes([attempt])[0]


def _attempt_shape(attempt: ProviderAttempt, *, can_be_asked: bool) -> Shape:
    error = attempt.error or {}
    return {
        "id": attempt.pk,
        "session": attempt.session_id,
        "message": attempt.message_id,
        "purpose": attempt.purpose,
        "ordinal": attempt.ordinal,
        "provider": attempt.provider,
        "model": attempt.model,
        "state": attempt.state,
        "outcome": attempt.outcome or None,
        "finish": attempt.finish or None,
        "error_class": error.get("error_class"),
        "error": error or None,
        "request_digest": attempt.request_digest,
        "client_request_id": attempt.client_request_id,
        "provider_request_id": attempt.provider_request_id or None,
        "provider_response_id": attempt.provider_response_id or None,
        "may_be_billed": attempt.may_be_billed,
        "usage": attempt.usage,
        "prepared_at": rfc3339(attempt.prepared_at),
        "dispatched_at": _maybe(attempt.dispatched_at),
        "headers_at": _maybe(attempt.headers_at),
        "first_output_at": _maybe(attempt.first_output_at),
        "settled_at": _maybe(attempt.settled_at),
        "unknown_at": _maybe(attempt.unknown_at),
        "decision": attempt.decision,
        "can_be_asked": can_be_asked,
    }


def attempt_facts(attempt: ProviderAttempt) -> list[Shape]:
    """What became durable of the attempt, in order."""
    facts = [
        ("prepared", attempt.prepared_at, {"request_digest": attempt.request_digest}),
        ("dispatched", attempt.dispatched_at, {"client_request_id": attempt.client_request_id}),
        (
            "response_started",
            attempt.headers_at,
            {"status": attempt.status, "provider_request_id": attempt.provider_request_id or None},
        ),
        (
            "first_output",
            attempt.first_output_at,
            {"provider_response_id": attempt.provider_response_id or None},
        ),
        ("settled", attempt.settled_at, {"outcome": attempt.outcome, "finish": attempt.finish or None}),
        ("unknown", attempt.unknown_at, {"error": attempt.error}),
        ("decided", attempt.decided_at, {"decision": attempt.decision}),
    ]
    return [
        {"at": rfc3339(at), "fact": fact, "detail": detail} for fact, at, detail in facts if at is not None
    ]
