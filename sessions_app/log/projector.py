"""From events to rows. Runs in the transaction of the event, live and in replay alike.

A handler changes only what its event says, by conditional update; a row that does not fit rolls the
whole transaction back. It reads no clock and wakes nobody.
"""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, Protocol, TypeVar

from schema import events
from schema.attempts import Decision, Usage
from schema.events import EventData
from sessions_app.log.errors import ProjectionConflict
from sessions_app.models import (
    MessagePart,
    PartCheckpoint,
    ProviderAttempt,
    Session,
    SessionInput,
    SessionMessage,
    statements,
)
from sessions_app.models.fields import NAME_LENGTH


class Target(Protocol):
    """The open transaction as the projector sees it."""

    session: Session

    def set(self, **columns: Any) -> None: ...


E_ = TypeVar("E_", bound=EventData)
Handler = Callable[[Target, Any, int, datetime], None]

_HANDLERS: Final[dict[type[EventData], Handler]] = {}


def project(target: Target, event: EventData, *, seq: int, at: datetime) -> None:
    """Apply one event to the projection tables.

    Raises ProjectionConflict when a row is missing or already past the state that the event leaves.
    """
    _HANDLERS[type(event)](target, event, seq, at)


def projected_events() -> frozenset[type[EventData]]:
    return frozenset(_HANDLERS)


def _projects(kind: type[E_]) -> Callable[[Callable[[Target, E_, int, datetime], None]], Handler]:
    def register(handler: Callable[[Target, E_, int, datetime], None]) -> Handler:
        _HANDLERS[kind] = handler
        return handler

    return register


def _one(changed: int, target: Target, event: EventData, row: str) -> None:
    if changed != 1:
        raise ProjectionConflict(session_id=target.session.pk, event_type=event.type, target=row)


# Session


@_projects(events.SessionCreated)
def _created(target: Target, event: events.SessionCreated, seq: int, at: datetime) -> None:
    target.set(
        title=event.title,
        agent=event.agent,
        model=event.model,
        recovery_policy=event.recovery_policy or "",
        active_at=at,
    )


@_projects(events.SessionUpdated)
def _updated(target: Target, event: events.SessionUpdated, seq: int, at: datetime) -> None:
    target.set(**event.to_json())


@_projects(events.SessionPaused)
def _paused(target: Target, event: events.SessionPaused, seq: int, at: datetime) -> None:
    """Announced in the log; the hold itself is operational."""


@_projects(events.SessionUnpaused)
def _unpaused(target: Target, event: events.SessionUnpaused, seq: int, at: datetime) -> None:
    """Announced in the log; the hold itself is operational."""


@_projects(events.AgentSwitched)
def _agent_switched(target: Target, event: events.AgentSwitched, seq: int, at: datetime) -> None:
    target.set(agent=event.agent)
    _append(target, event.message, "agent-switched", seq, at, agent=event.agent)


@_projects(events.ModelSwitched)
def _model_switched(target: Target, event: events.ModelSwitched, seq: int, at: datetime) -> None:
    target.set(model=event.model)
    _append(target, event.message, "model-switched", seq, at, model=event.model)


@_projects(events.RevertStaged)
def _revert_staged(target: Target, event: events.RevertStaged, seq: int, at: datetime) -> None:
    _one(_visible(target).filter(pk=event.message).count(), target, event, event.message)
    target.set(staged_revert=event.message)


@_projects(events.RevertCleared)
def _revert_cleared(target: Target, event: events.RevertCleared, seq: int, at: datetime) -> None:
    _one(int(target.session.staged_revert == event.message), target, event, event.message)
    target.set(staged_revert="")


@_projects(events.RevertCommitted)
def _revert_committed(target: Target, event: events.RevertCommitted, seq: int, at: datetime) -> None:
    """Nothing is deleted: attempts, calls and decisions of hidden messages stay what they are."""
    _one(int(target.session.staged_revert == event.message), target, event, event.message)
    boundary = _visible(target).values_list("seq", flat=True).get(pk=event.message)
    _visible(target).filter(seq__gte=boundary).update(reverted_seq=seq)
    target.set(staged_revert="")


def _visible(target: Target) -> Any:
    return SessionMessage.objects.filter(session_id=target.session.pk, reverted_seq=None)


@_projects(events.ExecutionInterrupted)
def _interrupted(target: Target, event: events.ExecutionInterrupted, seq: int, at: datetime) -> None:
    """Announced in the log; what it closed has events of its own."""


def _append(target: Target, message: str, kind: str, seq: int, at: datetime, **columns: Any) -> None:
    """Add a message that is complete from the start."""
    statements.insert(
        SessionMessage(
            id=message,
            session_id=target.session.pk,
            seq=seq,
            type=kind,
            state="completed",
            created_at=at,
            completed_at=at,
            **columns,
        )
    )


# Inbox


@_projects(events.PromptAdmitted)
def _admitted(target: Target, event: events.PromptAdmitted, seq: int, at: datetime) -> None:
    statements.insert(SessionInput.admitted(event, session_id=target.session.pk, seq=seq, at=at))
    target.set(active_at=at)


def _change_pending(target: Target, event: Any, **columns: Any) -> None:
    where = {
        "pk": event.message,
        "session_id": target.session.pk,
        "promoted_seq": None,
        "withdrawn_seq": None,
    }
    _one(statements.update(SessionInput, where, columns), target, event, event.message)


@_projects(events.PromptPromoted)
def _promoted(target: Target, event: events.PromptPromoted, seq: int, at: datetime) -> None:
    _change_pending(target, event, promoted_seq=seq)
    (admitted,) = statements.fetch(SessionInput, {"pk": event.message})
    statements.insert(
        SessionMessage(
            id=admitted.pk,
            session_id=target.session.pk,
            seq=seq,
            type="user" if admitted.origin == "user" else "synthetic",
            state="completed",
            created_at=admitted.created_at,
            completed_at=at,
            origin=admitted.origin,
            text=admitted.text,
        )
    )


@_projects(events.PromptWithdrawn)
def _withdrawn(target: Target, event: events.PromptWithdrawn, seq: int, at: datetime) -> None:
    _change_pending(target, event, withdrawn_seq=seq)


@_projects(events.PromptDeliveryChanged)
def _delivery_changed(target: Target, event: events.PromptDeliveryChanged, seq: int, at: datetime) -> None:
    _change_pending(target, event, delivery=event.delivery)


# Steps and parts


@_projects(events.StepStarted)
def _step_started(target: Target, event: events.StepStarted, seq: int, at: datetime) -> None:
    statements.insert(
        SessionMessage(
            id=event.message,
            session_id=target.session.pk,
            seq=seq,
            type="assistant",
            state="running",
            created_at=at,
            agent=event.agent,
            model=event.model,
        )
    )


def _change_open(target: Target, event: Any, **columns: Any) -> None:
    where = {
        "pk": event.message,
        "session_id": target.session.pk,
        "type": "assistant",
        "completed_at": None,
    }
    _one(statements.update(SessionMessage, where, columns), target, event, event.message)


def _require_newest_open(target: Target, event: Any) -> None:
    """Nothing new begins in a message that ended, nor in one that a newer step has superseded."""
    newest = statements.first(
        SessionMessage, {"session_id": target.session.pk, "type": "assistant"}, order_by="-seq"
    )
    is_it = newest is not None and newest.pk == event.message and newest.completed_at is None
    _one(int(is_it), target, event, event.message)


@_projects(events.StepEnded)
def _step_ended(target: Target, event: events.StepEnded, seq: int, at: datetime) -> None:
    _change_open(
        target, event, state="completed", completed_at=at, finish=event.finish, usage=_json(event.usage)
    )
    target.set(active_at=at)


@_projects(events.StepFailed)
def _step_failed(target: Target, event: events.StepFailed, seq: int, at: datetime) -> None:
    _change_open(
        target,
        event,
        state=event.outcome,
        completed_at=at,
        finish="error",
        error=event.error.to_json(),
        notice=event.notice or "",
        usage=_json(event.usage),
    )
    target.set(active_at=at)


def _json(usage: Usage | None) -> Any:
    return None if usage is None else usage.to_json()


def _open_part(
    target: Target,
    event: events.TextStarted | events.ReasoningStarted | events.ToolInputStarted,
    kind: str,
    at: datetime,
    *,
    state: str = "open",
    **columns: Any,
) -> None:
    _require_newest_open(target, event)
    statements.insert(
        MessagePart(
            id=event.part,
            user_id=target.session.user_id,
            message_id=event.message,
            session_id=target.session.pk,
            index=event.index,
            kind=kind,
            state=state,
            started_at=at,
            **columns,
        )
    )


@_projects(events.TextStarted)
def _text_started(target: Target, event: events.TextStarted, seq: int, at: datetime) -> None:
    _open_part(target, event, "text", at)


@_projects(events.ReasoningStarted)
def _reasoning_started(target: Target, event: events.ReasoningStarted, seq: int, at: datetime) -> None:
    _open_part(target, event, "reasoning", at)


def _close_part(
    target: Target,
    event: events.TextEnded | events.ReasoningEnded,
    at: datetime,
    *,
    complete: bool,
) -> None:
    changed = statements.update(
        MessagePart,
        {**_part_of(target, event), "state": "open"},
        {
            "state": "completed",
            "ended_at": at,
            "text": event.text,
            "complete": complete,
            "replay": event.replay,
        },
    )
    _one(changed, target, event, event.part)
    statements.delete(PartCheckpoint, {"pk": event.part})


def _part_of(target: Target, event: Any) -> dict[str, Any]:
    return {"pk": event.part, "message_id": event.message, "session_id": target.session.pk}


@_projects(events.TextEnded)
def _text_ended(target: Target, event: events.TextEnded, seq: int, at: datetime) -> None:
    _close_part(target, event, at, complete=True)


@_projects(events.ReasoningEnded)
def _reasoning_ended(target: Target, event: events.ReasoningEnded, seq: int, at: datetime) -> None:
    _close_part(target, event, at, complete=event.complete)


# Tools: pending -> running -> completed or error, forward only


@_projects(events.ToolInputStarted)
def _tool_input_started(target: Target, event: events.ToolInputStarted, seq: int, at: datetime) -> None:
    _open_part(
        target,
        event,
        "tool",
        at,
        state="pending",
        call_id=event.call_id[:NAME_LENGTH],
        name=event.name[:NAME_LENGTH],
        hosted=event.hosted,
    )


def _move_call(
    target: Target,
    event: Any,
    before: tuple[str, ...],
    *,
    approvals: tuple[str, ...] = ("", "waiting", "approved", "denied"),
    **columns: Any,
) -> None:
    where = {
        **_part_of(target, event),
        "kind": "tool",
        "state__in": before,
        "approval__in": approvals,
    }
    _one(statements.update(MessagePart, where, columns), target, event, event.part)


@_projects(events.ToolInputEnded)
def _tool_input_ended(target: Target, event: events.ToolInputEnded, seq: int, at: datetime) -> None:
    _move_call(target, event, ("pending",), raw_input=event.raw, replay=event.replay)


@_projects(events.ToolApprovalRequested)
def _approval_requested(target: Target, event: events.ToolApprovalRequested, seq: int, at: datetime) -> None:
    _move_call(
        target,
        event,
        ("pending",),
        input=event.input,
        input_digest=event.input_digest,
        effect=event.effect,
        approval="waiting",
        approval_reason=event.because,
        earlier=event.earlier or "",
        decision=None,
        decided_at=None,
    )


@_projects(events.ToolApprovalDecided)
def _approval_decided(target: Target, event: events.ToolApprovalDecided, seq: int, at: datetime) -> None:
    _move_call(
        target,
        event,
        ("pending",),
        approvals=("waiting",),
        approval="approved" if event.action == "approve" else "denied",
        decision=_decision(event.action, by=event.by, policy=False, reason=event.reason, at=at),
        decided_at=at,
    )


@_projects(events.ToolCalled)
def _tool_called(target: Target, event: events.ToolCalled, seq: int, at: datetime) -> None:
    _move_call(
        target,
        event,
        ("pending",),
        approvals=("", "approved"),
        state="running",
        input=event.input,
        input_digest=event.input_digest,
        effect=event.effect,
        annotations=event.annotations,
        called_at=at,
    )


@_projects(events.ToolProgress)
def _tool_progress(target: Target, event: events.ToolProgress, seq: int, at: datetime) -> None:
    _move_call(target, event, ("running",), progress=event.text)


@_projects(events.ToolSucceeded)
def _tool_succeeded(target: Target, event: events.ToolSucceeded, seq: int, at: datetime) -> None:
    columns: dict[str, Any] = {"output": event.output, "overflow": event.overflow or ""}
    if event.replay is not None:
        columns["replay"] = event.replay
    _move_call(
        target, event, ("running",), state="completed", ended_at=at, complete=True, progress="", **columns
    )


@_projects(events.ToolFailed)
def _tool_failed(target: Target, event: events.ToolFailed, seq: int, at: datetime) -> None:
    columns: dict[str, Any] = {"state": "error", "ended_at": at, "error": event.error}
    if event.unknown:
        # What was decided so far was whether to enter it; what became of it is a new question.
        columns.update(unknown_at=at, decision=None, decided_at=None)
    _move_call(target, event, ("pending", "running"), **columns)
    if event.unknown:
        _show_to_twins(target, event.part)


def _show_to_twins(target: Target, part_id: str) -> None:
    """A call that waits for a person, and would do the same once more, says what became of this one."""
    lost = MessagePart.objects.filter(pk=part_id).values_list("input_digest", "effect").first()
    if lost is None or not lost[0] or lost[1] != "side_effect":
        return
    MessagePart.objects.filter(
        session_id=target.session.pk, input_digest=lost[0], ended_at=None, state="pending", approval="waiting"
    ).update(earlier=part_id, approval_reason="duplicate")


@_projects(events.ToolDecided)
def _tool_decided(target: Target, event: events.ToolDecided, seq: int, at: datetime) -> None:
    decision = _decision(
        event.action, by=event.by, policy=event.policy, reason=event.reason, at=at, result=event.result
    )
    changed = statements.update(
        MessagePart,
        {**_part_of(target, event), "unknown_at__isnull": False, "decided_at": None},
        {"decision": decision, "decided_at": at},
    )
    _one(changed, target, event, event.part)


def _decision(
    action: Any, *, by: str, policy: bool, reason: str | None, at: datetime, result: Any = None
) -> dict[str, Any]:
    decision = Decision(
        action=action,
        by=by,
        policy=policy,
        reason=reason,
        at=at.isoformat().replace("+00:00", "Z"),
        result=result,
    )
    return decision.to_json()


@_projects(events.RetryScheduled)
def _retry_scheduled(target: Target, event: events.RetryScheduled, seq: int, at: datetime) -> None:
    _change_open(target, event, retry={"attempt": event.attempt, "at": event.at, "reason": event.reason})


# Attempts


@_projects(events.AttemptPrepared)
def _prepared(target: Target, event: events.AttemptPrepared, seq: int, at: datetime) -> None:
    if event.purpose == "step":
        _require_newest_open(target, event)
    statements.insert(
        ProviderAttempt(
            id=event.attempt,
            user_id=target.session.user_id,
            session_id=target.session.pk,
            message_id=event.message,
            purpose=event.purpose,
            ordinal=event.ordinal,
            state="prepared",
            provider=event.provider,
            model=event.model,
            request_digest=event.request_digest,
            client_request_id=event.attempt,
            hosted_tools=event.hosted_tools,
            prepared_at=at,
        )
    )
    if event.ordinal > 1:
        statements.update(SessionMessage, {"pk": event.message}, {"retry": None})


def _move(target: Target, event: Any, before: tuple[str, ...], **columns: Any) -> None:
    _one(_change_attempt(target, event, before, columns), target, event, event.attempt)


def _change_attempt(target: Target, event: Any, before: tuple[str, ...], columns: dict[str, Any]) -> int:
    where = {"pk": event.attempt, "session_id": target.session.pk, "state__in": before}
    return statements.update(ProviderAttempt, where, columns)


@_projects(events.AttemptDispatched)
def _dispatched(target: Target, event: events.AttemptDispatched, seq: int, at: datetime) -> None:
    _move(target, event, ("prepared",), state="dispatched", dispatched_at=at, may_be_billed=True)


@_projects(events.AttemptResponseStarted)
def _response_started(target: Target, event: events.AttemptResponseStarted, seq: int, at: datetime) -> None:
    _move(
        target,
        event,
        ("dispatched", "streaming"),
        headers_at=at if event.at is None else datetime.fromisoformat(event.at),
        status=event.status,
        provider_request_id=(event.provider_request_id or "")[:NAME_LENGTH],
    )


@_projects(events.AttemptIdentified)
def _identified(target: Target, event: events.AttemptIdentified, seq: int, at: datetime) -> None:
    _move(target, event, ("dispatched",), provider_response_id=event.provider_response_id[:NAME_LENGTH])


@_projects(events.AttemptFirstOutput)
def _first_output(target: Target, event: events.AttemptFirstOutput, seq: int, at: datetime) -> None:
    columns: dict[str, Any] = {"state": "streaming", "first_output_at": at}
    if event.provider_response_id is not None:
        columns["provider_response_id"] = event.provider_response_id[:NAME_LENGTH]
    _move(target, event, ("dispatched",), **columns)


@_projects(events.AttemptSettled)
def _settled(target: Target, event: events.AttemptSettled, seq: int, at: datetime) -> None:
    columns = _ending(target, event)
    columns.update(state="settled", outcome=event.outcome, settled_at=at, may_be_billed=event.may_be_billed)
    if event.finish is not None:
        columns["finish"] = event.finish
    if not _change_attempt(target, event, ("prepared", "dispatched", "streaming"), columns):
        _forget_usage(target, event.attempt)
        _move(target, event, ("unknown",), unknown_at=None, **columns)


@_projects(events.AttemptAsked)
def _asked(target: Target, event: events.AttemptAsked, seq: int, at: datetime) -> None:
    """Announced in the log; nothing is known that was not known before."""


@_projects(events.AttemptResumed)
def _resumed(target: Target, event: events.AttemptResumed, seq: int, at: datetime) -> None:
    _forget_usage(target, event.attempt)
    _move(target, event, ("unknown",), state="streaming", unknown_at=None, error=None, usage=None)
    changed = SessionMessage.objects.filter(
        pk=event.message, session_id=target.session.pk, type="assistant", state="unknown"
    ).update(state="running", completed_at=None, finish="", error=None, notice="", usage=None)
    _one(changed, target, event, event.message)
    _require_newest_open(target, event)
    if not event.keeps_parts:
        MessagePart.objects.filter(message_id=event.message).delete()


def _forget_usage(target: Target, attempt: str) -> None:
    """What was counted of an unknown attempt is about to be told anew."""
    rows = ProviderAttempt.objects.filter(pk=attempt).values_list("usage", "may_be_billed")
    for usage, may_be_billed in rows:
        counted = None if usage is None else Usage.model_validate(usage)
        _count(target, counted, may_be_billed=may_be_billed, sign=-1)


def _count(target: Target, usage: Usage | None, *, may_be_billed: bool, sign: Literal[1, -1] = 1) -> None:
    """Add what an attempt used to the session's totals, or take it out of them."""
    session = target.session
    if usage is None:
        if may_be_billed:
            target.set(uncounted_attempts=session.uncounted_attempts + sign)
        return
    target.set(
        input_tokens=session.input_tokens + sign * (usage.input_tokens or 0),
        output_tokens=session.output_tokens + sign * (usage.output_tokens or 0),
    )
    if usage.cost is not None:
        target.set(cost=(session.cost or Decimal(0)) + sign * _dollars(usage.cost))


def _dollars(cost: float) -> Decimal:
    """Exactly as it is written: totals must not depend on the order of their parts."""
    return Decimal(repr(cost)).quantize(Decimal("1e-10"))


@_projects(events.AttemptUnknown)
def _unknown(target: Target, event: events.AttemptUnknown, seq: int, at: datetime) -> None:
    columns = _ending(target, event)
    columns.update(state="unknown", unknown_at=at, may_be_billed=True)
    _move(target, event, ("dispatched", "streaming"), **columns)


@_projects(events.AttemptDecided)
def _attempt_decided(target: Target, event: events.AttemptDecided, seq: int, at: datetime) -> None:
    changed = statements.update(
        ProviderAttempt,
        {
            "pk": event.attempt,
            "session_id": target.session.pk,
            "unknown_at__isnull": False,
            "decided_at": None,
        },
        {
            "decision": _decision(event.action, by=event.by, policy=event.policy, reason=event.reason, at=at),
            "decided_at": at,
        },
    )
    _one(changed, target, event, event.attempt)


@_projects(events.RecoveryClaimed)
def _claimed(target: Target, event: events.RecoveryClaimed, seq: int, at: datetime) -> None:
    """Announced in the log; the claim's row is recovery's own."""


def _ending(target: Target, event: events.AttemptSettled | events.AttemptUnknown) -> dict[str, Any]:
    """What an ended attempt keeps whatever its end, and the session's totals with it."""
    columns: dict[str, Any] = {"usage": _json(event.usage)}
    if event.error is not None:
        columns["error"] = event.error.to_json()
    if event.provider_response_id is not None:
        columns["provider_response_id"] = event.provider_response_id[:NAME_LENGTH]
    may_be_billed = event.may_be_billed if isinstance(event, events.AttemptSettled) else True
    _count(target, event.usage, may_be_billed=may_be_billed)
    return columns
