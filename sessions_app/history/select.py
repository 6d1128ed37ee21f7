"""Which messages the next request is made from."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, cast

from django.db import connection

from schema.attempts import Decision
from schema.inputs import Origin
from sessions_app.history.entries import Entry, PartEntry
from sessions_app.models import MessagePart, ProviderAttempt, SessionMessage, statements

SPOKEN: Final = ("user", "synthetic", "system", "assistant")

_OF_A_MESSAGE: Final = ("id", "type", "state", "origin", "text", "model", "notice")
_OF_A_PART: Final = (
    *("message_id", "kind", "text", "complete", "replay", "call_id", "name", "raw_input", "input", "state"),
    *("hosted", "effect", "approval", "called_at", "unknown_at", "output", "error", "decision"),
)

_ATTEMPTS_SINCE_THE_NEWEST_PROMPT: Final = f"""
    SELECT COUNT(*)
    FROM {ProviderAttempt._meta.db_table} attempt JOIN {SessionMessage._meta.db_table} message
    ON message.id = attempt.message_id
    WHERE attempt.session_id = %s AND attempt.purpose = 'step' AND message.seq > COALESCE((
        SELECT MAX(seq) FROM {SessionMessage._meta.db_table}
        WHERE session_id = %s AND type = 'user' AND reverted_seq IS NULL
    ), 0)
"""  # noqa: S608, SLF001 - names of ours, values bound


def select(session_id: str) -> tuple[Entry, ...]:
    """The visible messages that a model reads, in order; two statements, whatever their number."""
    messages = statements.fetch_columns(
        SessionMessage,
        _OF_A_MESSAGE,
        {"session_id": session_id, "reverted_seq": None, "type__in": SPOKEN},
        order_by="seq",
    )
    parts: defaultdict[str, list[Any]] = defaultdict(list)
    for part in statements.fetch_columns(
        MessagePart, _OF_A_PART, {"session_id": session_id}, order_by="index"
    ):
        parts[part.message_id].append(part)
    return tuple(_entry(row, parts[row.id]) for row in messages)


def _entry(row: Any, parts: Iterable[Any]) -> Entry:
    return Entry(
        type=row.type,
        state=row.state,
        origin=cast("Origin", row.origin or "system"),
        text=row.text,
        model=row.model,
        notice=row.notice,
        parts=tuple(_part(part) for part in parts),
    )


def _part(row: Any) -> PartEntry:
    if row.kind != "tool":
        return PartEntry(kind=row.kind, text=row.text, complete=row.complete, replay=row.replay)
    return PartEntry(
        kind=row.kind,
        replay=row.replay,
        call_id=row.call_id,
        name=row.name,
        raw_input=row.raw_input,
        input=row.input,
        state=row.state,
        hosted=row.hosted,
        effect=row.effect,
        approval=row.approval,
        entered=row.called_at is not None,
        unknown=row.unknown_at is not None,
        output=row.output,
        error=row.error,
        decision=None if row.decision is None else Decision.model_validate(row.decision),
    )


def attempts_for_newest_prompt(session_id: str) -> int:
    """How many attempts were made since the newest prompt of a person entered the transcript."""
    with connection.cursor() as cursor:
        cursor.execute(_ATTEMPTS_SINCE_THE_NEWEST_PROMPT, [session_id, session_id])
        count: int = cursor.fetchone()[0]
    return count
