"""Which messages the next request is made from."""

from typing import Final, cast

from django.db.models import Prefetch

from schema.inputs import Origin
from sessions_app.history.entries import Entry, PartEntry
from sessions_app.models import MessagePart, ProviderAttempt, SessionMessage

SPOKEN: Final = ("user", "synthetic", "system", "assistant")


def select(session_id: str) -> tuple[Entry, ...]:
    """The visible messages that a model reads, in order; two statements, whatever their number."""
    rows = (
        SessionMessage.objects.filter(session_id=session_id, reverted_seq=None, type__in=SPOKEN)
        .order_by("seq")
        .prefetch_related(Prefetch("parts", queryset=MessagePart.objects.order_by("index")))
    )
    return tuple(_entry(row) for row in rows)


def _entry(row: SessionMessage) -> Entry:
    return Entry(
        type=row.type,
        state=row.state,
        origin=cast("Origin", row.origin or "system"),
        text=row.text,
        model=row.model,
        notice=row.notice,
        parts=tuple(
            PartEntry(kind=part.kind, text=part.text, complete=part.complete, replay=part.replay)
            for part in row.parts.all()
        ),
    )


def attempts_for_newest_prompt(session_id: str) -> int:
    """How many attempts were made since the newest prompt of a person entered the transcript."""
    newest = (
        SessionMessage.objects.filter(session_id=session_id, type="user", reverted_seq=None)
        .order_by("-seq")
        .values_list("seq", flat=True)
        .first()
    )
    return ProviderAttempt.objects.filter(
        session_id=session_id, purpose="step", message__seq__gt=newest or 0
    ).count()
