"""Carrying a plan out: events for what it settles, and the way the session goes on."""

from functools import singledispatch

from recovery import words
from recovery.plan import EndStep, EndText, FailCall, FailStep, Plan, SettleAttempt
from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptDecided,
    AttemptSettled,
    AttemptUnknown,
    EventData,
    ExecutionInterrupted,
    ReasoningEnded,
    StepEnded,
    StepFailed,
    TextEnded,
    ToolDecided,
    ToolFailed,
)
from sessions_app import history, inbox
from sessions_app.log import SessionTransaction
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.tools.port import INTERRUPTED

BY_POLICY = "recovery policy"


def settle(tx: SessionTransaction, plan: Plan) -> None:
    """Store the end of everything the plan names, in its order."""
    for action in plan.actions:
        tx.append(_event(action))
    _abandon(tx, attempts=plan.abandoned, because="not_a_step")


@singledispatch
def _event(action: object) -> EventData:
    raise TypeError(f"no event settles {action!r}")


@_event.register
def _(action: EndText) -> EventData:
    part = action.part
    if part.kind == "text":
        return TextEnded(message=part.message_id, part=part.id, text=part.text)
    return ReasoningEnded(message=part.message_id, part=part.id, text=part.text, complete=False)


@_event.register
def _(action: FailCall) -> EventData:
    part = action.part
    return ToolFailed(message=part.message_id, part=part.id, error=INTERRUPTED, unknown=action.unknown)


@_event.register
def _(action: SettleAttempt) -> EventData:
    attempt = action.attempt
    if not action.unknown:
        return AttemptSettled(
            attempt=attempt.id,
            message=attempt.message_id,
            outcome="not_sent",
            error=AttemptError(error_class="not_sent", reason="crash", message=words.NEVER_SENT),
            may_be_billed=False,
        )
    return AttemptUnknown(
        attempt=attempt.id,
        message=attempt.message_id,
        error=AttemptError(
            error_class="partial" if attempt.has_response else "ambiguous",
            reason="crash",
            message=words.LOST,
        ),
    )


@_event.register
def _(action: EndStep) -> EventData:
    attempt = ProviderAttempt.objects.filter(message_id=action.message.id, outcome="completed").latest(
        "ordinal"
    )
    usage = None if attempt.usage is None else Usage.model_validate(attempt.usage)
    return StepEnded(message=action.message.id, finish=attempt.finish, usage=usage)


@_event.register
def _(action: FailStep) -> EventData:
    if action.superseded:
        message, notice = words.SUPERSEDED, history.notice_for("shutdown")
    elif action.outcome == "unknown":
        message, notice = words.LOST, history.notice_for("unknown")
    else:
        message, notice = words.RESTARTED, history.notice_for("shutdown")
    return StepFailed(
        message=action.message.id,
        outcome=action.outcome,
        error=StepError(reason="crash", message=message),
        notice=notice,
    )


def go_on(tx: SessionTransaction, plan: Plan, *, continuation_id: str) -> None:
    """Owe, continue, ask or leave, as the plan says. The caller wakes if something is due then."""
    match plan.go_on:
        case "owe" | "inquire":
            _owe(tx, plan)
        case "continue":
            continue_(tx, plan, continuation_id=continuation_id)
        case "paused":
            _pause(tx)
        case "park":
            inbox.clear(tx)
            tx.set(parked=True)
        case "ask":
            inbox.clear(tx)
            inbox.hold_undecided(tx)
            _owe_answers(tx)
        case "off":
            inbox.clear(tx)
            _owe_answers(tx)
        case "nothing":
            pass


def _owe_answers(tx: SessionTransaction) -> None:
    """Calls that a person answered before are still to be entered or refused, whatever is unknown beside them."""
    answered = MessagePart.objects.filter(
        session_id=tx.session.pk, ended_at=None, approval__in=("approved", "denied")
    )
    if answered.exists():
        inbox.owe(tx, not_before=tx.now)


def _owe(tx: SessionTransaction, plan: Plan) -> None:
    if plan.inquiry:
        inbox.owe_inquiry(tx, attempt_id=plan.inquiry)
    else:
        inbox.owe(tx, not_before=tx.now)


def continue_(tx: SessionTransaction, plan: Plan, *, continuation_id: str) -> None:
    """Policy decides what is unknown, and one new attempt follows that is told about it."""
    decide_by_policy(tx, attempts=plan.unknown_attempts, calls=plan.unknown_calls)
    inbox.owe(tx, not_before=tx.now)
    if plan.admits_continuation:
        names = MessagePart.objects.filter(pk__in=plan.unknown_calls).order_by("index")
        inbox.admit_own(
            tx,
            message_id=continuation_id,
            text=words.continuation(calls=list(names.values_list("name", flat=True))),
            origin="recovery",
        )


def decide_by_policy(tx: SessionTransaction, *, attempts: tuple[str, ...], calls: tuple[str, ...]) -> None:
    """Store that policy chose to go on: the unknown stands, and a new attempt follows."""
    _abandon(tx, attempts=attempts, because="continue")
    for part in MessagePart.objects.filter(pk__in=calls).order_by("index"):
        tx.append(
            ToolDecided(
                message=part.message_id,
                part=part.pk,
                action="abandon",
                by=BY_POLICY,
                policy=True,
                reason="continue",
            )
        )


def _abandon(tx: SessionTransaction, *, attempts: tuple[str, ...], because: str) -> None:
    for attempt in ProviderAttempt.objects.filter(pk__in=attempts).order_by("prepared_at", "pk"):
        tx.append(
            AttemptDecided(
                attempt=attempt.pk,
                message=attempt.message_id,
                action="abandon",
                by=BY_POLICY,
                policy=True,
                reason=because,
            )
        )


def _pause(tx: SessionTransaction) -> None:
    """The owner did not live to serve a Stop: nothing continues, what was pending waits.

    A Stop that was to let pending steers go on still does, and a prompt that came after it goes through.
    """
    asked_at = tx.head_seq if tx.session.interrupt_seq is None else tx.session.interrupt_seq
    tx.append(ExecutionInterrupted(reason="recovery"))
    inbox.clear(tx)
    if tx.session.interrupt_resume and inbox.wants_wake(tx.session, delivery="steer"):
        return
    if inbox.wants_wake(tx.session, admitted_seq__gt=asked_at):
        return
    if inbox.has_pending(tx.session.pk, up_to=asked_at):
        inbox.pause(tx, up_to=asked_at, by="recovery")
