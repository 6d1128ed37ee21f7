"""The durable stages of a drain: each function is one unit, one transaction, on a database thread."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from schema.attempts import StepError
from schema.events import (
    AttemptPrepared,
    ExecutionInterrupted,
    StepFailed,
    StepStarted,
)
from schema.problems import InvalidValue
from sessions_app import history, identity, inbox, ownership
from sessions_app.live import wakes
from sessions_app.log import Held, SessionTransaction, session_transaction
from sessions_app.models import Session
from sessions_app.providers import registry
from sessions_app.providers.port import ModelRequest, Provider
from sessions_app.sessions.agents import AgentChoice, get_agent

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A step whose request is durable and not sent yet."""

    held: Held
    message_id: str
    provider: Provider
    request: ModelRequest


def begin(*, session_id: str, worker_id: str, now: datetime) -> Held | ownership.Refusal:
    """Take the session and promote what is pending, in one transaction.

    The wake that led here is over with this transaction, whatever it answers: an admission that commits
    later enqueues a new one. Raises log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        tx.set(wake_enqueued_at=None)
        taken = ownership.take(tx, worker_id=worker_id)
        if isinstance(taken, Held):
            _promote(tx)
        return taken


def proceed(tx: SessionTransaction) -> bool:
    """At the end of a step: serve a Stop, promote what comes next, or release. False: released."""
    if _is_asked_to_stop(tx.session):
        return stop(tx)
    if _promote(tx) or tx.session.owed_at is not None:
        return True
    return not ownership.release(tx)


def hand_on(tx: SessionTransaction) -> None:
    """Release at a shutdown, with a wake for whoever comes next if anything is left to do."""
    if _is_asked_to_stop(tx.session):
        stop(tx)
    ownership.give_up(tx)
    if inbox.is_due(tx.session, now=tx.now):
        tx.set(wake_enqueued_at=None)
        wakes.enqueue(tx)


def stop(tx: SessionTransaction, *, message: str | None = None) -> bool:
    """Serve the Stop that was requested: nothing is owed, what was pending then waits. False: released.

    A user's prompt that came after the request goes through, and with it what waited before it.
    """
    session = tx.session
    asked_at = tx.head_seq if session.interrupt_seq is None else session.interrupt_seq
    resume = session.interrupt_resume
    tx.set(interrupt_fence=None, interrupt_seq=None, interrupt_resume=False)
    tx.append(ExecutionInterrupted(message=message, reason="user"))
    inbox.clear(tx)
    if resume:
        inbox.promote_steers(tx)
    newer = inbox.wanting_wake(session).filter(admitted_seq__gt=asked_at)
    if not newer.exists() and inbox.has_pending(tx, up_to=asked_at):
        inbox.pause(tx, up_to=asked_at)
    if newer.exists() or session.owed_at is not None:
        return proceed(tx)
    ownership.give_up(tx)
    return False


def _promote(tx: SessionTransaction) -> bool:
    """Steers join what is owed; a queued input starts only when nothing is."""
    if tx.session.owed_at is not None:
        return bool(inbox.promote_steers(tx))
    return bool(inbox.promote(tx))


def _is_asked_to_stop(session: Session) -> bool:
    return session.interrupt_fence is not None and session.interrupt_fence == session.fence


def prepare(*, held: Held, now: datetime) -> Prepared | bool:
    """Make the next request durable: ``step.started`` and ``attempt.prepared`` in one transaction.

    Answers whether to go on draining instead, when the step ended before there was a request: a Stop was
    asked for, or there is no model to ask. Raises FenceLost or SessionGone.
    """
    session = Session.objects.filter(pk=held.session_id).first()
    try:
        agent, provider, model = _configured(session)
    except (InvalidValue, registry.ModelError) as unusable:
        return _fail_unprepared(held, detail=str(unusable), now=now)
    request = _request(held, agent=agent, model=model)
    digest = provider.digest(request)
    message_id = identity.new_message_id()
    with session_transaction(held.session_id, now=now, held=held) as tx:
        if _is_asked_to_stop(tx.session):
            return stop(tx)
        _start_step(tx, message_id=message_id, agent=agent.name, model=model)
        tx.append(
            AttemptPrepared(
                attempt=request.attempt,
                message=message_id,
                purpose="step",
                ordinal=1,
                provider=provider.name,
                model=request.model,
                request_digest=digest,
            )
        )
    return Prepared(held=held, message_id=message_id, provider=provider, request=request)


def _configured(session: Session | None) -> tuple[AgentChoice, Provider, str]:
    if session is None:
        raise InvalidValue(field="session", detail="The session was deleted.")
    provider, _ = registry.resolve(session.model)
    return get_agent(session.agent), provider, session.model


def _request(held: Held, *, agent: AgentChoice, model: str) -> ModelRequest:
    return ModelRequest(
        attempt=identity.new_attempt_id(),
        model=model.partition(":")[2],
        turns=history.lower(history.select(held.session_id), model=model),
        system=agent.system,
        earlier_attempts=history.attempts_for_newest_prompt(held.session_id),
    )


def _start_step(tx: SessionTransaction, *, message_id: str, agent: str, model: str) -> None:
    tx.set(step_count=tx.session.step_count + 1)
    inbox.clear(tx)
    tx.append(StepStarted(message=message_id, agent=agent, model=model, step=tx.session.step_count))


def _fail_unprepared(held: Held, *, detail: str, now: datetime) -> bool:
    """The step fails before a request could be made, and nothing is owed for it any more."""
    message_id = identity.new_message_id()
    with session_transaction(held.session_id, now=now, held=held) as tx:
        _start_step(tx, message_id=message_id, agent=tx.session.agent, model=tx.session.model)
        tx.append(
            StepFailed(
                message=message_id,
                outcome="failed",
                error=StepError(reason="configuration", message=detail),
            )
        )
        return proceed(tx)


def to_cancel(*, held: Sequence[Held]) -> set[str]:
    """Of these, the sessions whose drain must be cancelled: a Stop waits, or they are lost or deleted."""
    rows = Session.objects.filter(pk__in=[each.session_id for each in held]).values_list(
        "pk", "owner_id", "fence", "interrupt_fence"
    )
    going_on = {
        (session_id, owner_id, fence)
        for session_id, owner_id, fence, interrupt_fence in rows
        if interrupt_fence != fence
    }
    return {
        each.session_id
        for each in held
        if (each.session_id, each.worker_id, each.fence) not in going_on
    }


def rewake(*, session_id: str, now: datetime) -> None:
    """Put a wake back that this process cannot serve any more. Raises SessionGone."""
    with session_transaction(session_id, now=now) as tx:
        tx.set(wake_enqueued_at=None)
        wakes.enqueue(tx)
