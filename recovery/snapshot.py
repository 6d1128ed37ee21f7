"""What a claim finds: the unfinished rows of one session, read under its lock."""

from recovery import policy
from recovery.plan import FoundAttempt, FoundMessage, FoundPart, Policy, Snapshot
from sessions_app import inbox
from sessions_app.attempts import asking
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionMessage


def take(session: Session, *, is_over_budget: bool, override: Policy | None = None) -> Snapshot:
    """Read everything that is unfinished. ``override`` replaces the policy of this one recovery."""
    effective = policy.effective(session)
    return Snapshot(
        policy=override or effective.policy,
        continues_after_effects=effective.continues_after_effects,
        is_over_budget=is_over_budget,
        is_asked_to_stop=session.interrupt_fence is not None and session.interrupt_fence == session.fence,
        is_wanted_again=session.interrupt_fence is None and session.interrupt_resume,
        is_run_owed=session.owed_at is not None,
        has_waiting_steer=inbox.wants_wake(session, delivery="steer", origin="user"),
        newest_turn_seq=_newest_turn(session),
        messages=_messages(session),
        parts=_parts(session),
        attempts=_attempts(session),
    )


def _newest_turn(session: Session) -> int:
    turns = SessionMessage.objects.filter(
        session_id=session.pk, type__in=("user", "synthetic", "assistant"), reverted_seq=None
    )
    return turns.order_by("-seq").values_list("seq", flat=True).first() or 0


def _messages(session: Session) -> tuple[FoundMessage, ...]:
    unfinished = SessionMessage.objects.filter(session_id=session.pk, completed_at=None).order_by("seq")
    completed = set(
        ProviderAttempt.objects.filter(message__in=unfinished, outcome="completed").values_list(
            "message_id", flat=True
        )
    )
    return tuple(
        FoundMessage(id=message.pk, seq=message.seq, has_completed_attempt=message.pk in completed)
        for message in unfinished
    )


def _parts(session: Session) -> tuple[FoundPart, ...]:
    unfinished = (
        MessagePart.objects.filter(session_id=session.pk, ended_at=None)
        .select_related("checkpoint")
        .order_by("message__seq", "index")
    )
    return tuple(_part(part) for part in unfinished)


def _part(part: MessagePart) -> FoundPart:
    checkpoint = getattr(part, "checkpoint", None)
    return FoundPart(
        id=part.pk,
        message_id=part.message_id,
        kind=part.kind,
        state=part.state,
        approval=part.approval,
        hosted=part.hosted,
        effect=part.effect,
        text="" if checkpoint is None else checkpoint.text,
    )


def _attempts(session: Session) -> tuple[FoundAttempt, ...]:
    unsettled = ProviderAttempt.objects.filter(
        session_id=session.pk, settled_at=None, unknown_at=None
    ).order_by("prepared_at", "pk")
    return tuple(
        FoundAttempt(
            id=attempt.pk,
            message_id=attempt.message_id,
            purpose=attempt.purpose,
            state=attempt.state,
            has_response=attempt.headers_at is not None or attempt.state == "streaming",
            hosted_tools=attempt.hosted_tools,
            can_be_asked=asking.find_askable(attempt) is not None,
            is_decided=attempt.decided_at is not None,
        )
        for attempt in unsettled
    )
