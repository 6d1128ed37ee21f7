"""What a decision on unknown attempts would mean, told before anybody decides."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef

from recovery.decisions import AttemptAction, newer_turns
from sessions_app.models import MessagePart, ProviderAttempt


@dataclass(kw_only=True)
class Consequence:
    """One attempt as whoever decides should see it."""

    attempt: ProviderAttempt
    refused: str = ""
    """Why the decision will be refused; empty when it will be taken."""
    effects: list[str] = field(default_factory=list)
    """Calls of its step that had, or may have had, an effect outside; newest facts, in order."""
    received: str = ""
    """The beginning of what was received."""


def foresee(attempts: Sequence[ProviderAttempt], action: AttemptAction) -> list[Consequence]:
    """What ``action`` would mean for each; a fixed number of statements, whatever their number.

    A decision that somebody makes meanwhile changes it: the decision itself looks again.
    """
    effects, received = _parts([attempt.message_id for attempt in attempts if attempt.message_id])
    left_behind = _left_behind(attempts) if action == "retry" else set()
    return [
        Consequence(
            attempt=attempt,
            refused=_refused(attempt, is_left_behind=attempt.pk in left_behind),
            effects=effects[attempt.message_id or ""],
            received=received[attempt.message_id or ""],
        )
        for attempt in attempts
    ]


def _refused(attempt: ProviderAttempt, *, is_left_behind: bool) -> str:
    if attempt.decision is not None:
        return f"Already decided: {attempt.decision['action']}, by {attempt.decision['by']}."
    if attempt.state != "unknown":
        return "Its outcome is known."
    return "A newer turn exists, or the transcript goes back behind it." if is_left_behind else ""


def _left_behind(attempts: Sequence[ProviderAttempt]) -> set[str]:
    newer = newer_turns(OuterRef("session_id"), after=OuterRef("message__seq"))
    rows = ProviderAttempt.objects.filter(pk__in=[attempt.pk for attempt in attempts]).annotate(
        has_newer=Exists(newer)
    )
    return {
        pk
        for pk, has_newer, reverted_seq, staged in rows.values_list(
            "pk", "has_newer", "message__reverted_seq", "session__staged_revert"
        )
        if has_newer or reverted_seq is not None or staged
    }


def _parts(message_ids: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    effects: defaultdict[str, list[str]] = defaultdict(list)
    received: defaultdict[str, str] = defaultdict(str)
    parts = MessagePart.objects.filter(message_id__in=message_ids).order_by("message_id", "index")
    for part in parts:
        if part.kind == "text":
            received[part.message_id] += part.text
        elif part.kind == "tool" and part.effect != "read" and (part.called_at is not None or part.hosted):
            effects[part.message_id].append(f"{part.name} ({_became(part)})")
    return effects, received


def _became(part: MessagePart) -> str:
    if part.hosted:
        return "run by the provider"
    return "outcome unknown" if part.unknown_at is not None else part.state
