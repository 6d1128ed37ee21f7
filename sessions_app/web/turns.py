"""The messages of a page with the words, folds and cards that they are shown with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q

from sessions_app import sessions
from sessions_app.models import MessagePart, Session, SessionMessage
from sessions_app.sessions import shapes as core
from sessions_app.web import calls, cards, words

Shape = dict[str, Any]

MARKUP: Final = 300
CALL_MARKUP: Final = 1000

_TURNS: Final = frozenset({"user", "synthetic", "assistant"})
"""What a model reads: after one of these, an older answer is superseded."""


@dataclass(frozen=True, kw_only=True)
class Banner:
    """How much waits for a decision, and the first of it that the page shows."""

    words: str
    first: str


def shapes(messages: Sequence[SessionMessage], *, has_newest: bool) -> list[Shape]:
    """The messages in order, dressed. Without the newest on the page, every answer is an older one."""
    found = sessions.message_shapes(messages)
    attempts = _attempts(messages)
    newest = next((shape["id"] for shape in reversed(found) if shape["type"] in _TURNS), None)
    for row, shape in zip(messages, found, strict=True):
        is_newest = has_newest and shape["id"] == newest
        _dress(shape, row, attempts=attempts[row.pk], is_newest=is_newest)
    return found


def _attempts(messages: Sequence[SessionMessage]) -> Mapping[str, list[Shape]]:
    """The shapes of the attempts, by message."""
    found: dict[str, list[Shape]] = {message.pk: [] for message in messages}
    rows = [attempt for message in messages for attempt in message.attempts.all()]
    for shape in sessions.attempt_shapes(rows):
        found[shape["message"]].append(shape)
    return found


def _dress(shape: Shape, row: SessionMessage, *, attempts: list[Shape], is_newest: bool) -> None:
    for stored, part in zip(row.parts.all(), shape["parts"], strict=True):
        if part["kind"] == "tool":
            calls.dress(part, is_newest=is_newest)
        elif part["kind"] == "reasoning":
            part["label"] = words.thoughts(_seconds(stored))
            part["started_at"] = core.rfc3339(stored.started_at)
    shape["cards"] = cards.of_attempts(shape, attempts, is_newest=is_newest)
    shape["unknown"] = [
        cards.attempt_facts(attempt)
        for attempt in attempts
        if attempt["state"] == "unknown" and attempt["purpose"] == "step"
    ]
    shape["blocks"] = calls.blocks(shape["parts"])
    shape["retry"] = row.retry if row.completed_at is None else None
    shape["line"] = words.line(shape, origin=row.origin)
    shape["note"] = words.note(shape)


def _seconds(part: MessagePart) -> float | None:
    """How long it took to write, to the millisecond, as the scripts know it."""
    if part.ended_at is None:
        return None
    return (_milliseconds(part.ended_at) - _milliseconds(part.started_at)).total_seconds()


def _milliseconds(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def weight(message: SessionMessage) -> int:
    """About how much a message adds to a page, in characters."""
    parts = message.parts.all()
    return MARKUP + len(message.text) + sum(_weight_of_part(part) for part in parts)


def _weight_of_part(part: MessagePart) -> int:
    if part.kind != "tool":
        return len(part.text)
    return CALL_MARKUP + min(len(part.output or part.error) + len(part.raw_input), 2 * calls.SHOWN_CHARACTERS)


def elsewhere(session: Session, status: Shape, messages: Sequence[Shape]) -> list[Shape]:
    """The cards of what is unknown and undecided in messages that the page does not show.

    They are on an earlier page, or hidden by going back: what happened outside is as unknown as before.
    """
    shown = {card["id"] for message in messages for card in _cards(message)}
    attempts = [each for each in status["unknown"]["attempts"] if each not in shown]
    tools = [each for each in status["unknown"]["tools"] if each not in shown]
    if not attempts and not tools:
        return []
    holding = SessionMessage.objects.filter(Q(attempts__in=attempts) | Q(parts__in=tools), session=session)
    rows = sessions.with_contents(SessionMessage.objects.filter(pk__in=holding.values("pk"))).order_by("seq")
    found = (card for message in shapes(list(rows), has_newest=False) for card in _cards(message))
    return [card for card in found if card["id"] in (*attempts, *tools)]


def banner(status: Shape, messages: Sequence[Shape], elsewhere: Sequence[Shape]) -> Banner:
    """Nothing while the session goes on by itself, or where policy leaves what is unknown alone."""
    if status["state"] not in ("needs_decision", "waiting"):
        return Banner(words="", first="")
    open_ones = [*status["unknown"]["attempts"], *status["unknown"]["tools"], *status["waiting"]]
    shown = (card["id"] for card in (*elsewhere, *(card for message in messages for card in _cards(message))))
    return Banner(
        words=cards.banner(len(open_ones)), first=next((each for each in shown if each in open_ones), "")
    )


def _cards(message: Shape) -> list[Shape]:
    of_calls = [part["card"] for part in message["parts"] if part.get("card")]
    return [*of_calls, *message["cards"]]
