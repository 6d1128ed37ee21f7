"""The durable stages of a drain: each function is one unit, one transaction, on a database thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import DatabaseError, InterfaceError

from schema.attempts import StepError, Usage
from schema.events import AttemptPrepared, ExecutionInterrupted, StepFailed, StepStarted
from schema.problems import InvalidValue
from sessions_app import history, hooks, identity, inbox, ownership
from sessions_app.agents import DEFAULT, AgentChoice, find_agent, get_agent
from sessions_app.execution import faults, retries
from sessions_app.live import wakes
from sessions_app.log import FenceLost, Held, SessionGone, SessionTransaction, session_transaction
from sessions_app.models import Session, SessionMessage, statements
from sessions_app.providers import registry
from sessions_app.providers.named import Traits
from sessions_app.providers.port import ModelRequest, Provider
from sessions_app.tools.port import Toolset


@dataclass(kw_only=True)
class Sending:
    """One physical request of a step."""

    provider: Provider
    request: ModelRequest
    ordinal: int
    is_settled: bool = False


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a step works with: its message, its agent, the tools it offered."""

    message_id: str
    agent: AgentChoice
    toolset: Toolset
    has_steps_left: bool
    can_call: bool = True
    """Whether its model can call tools."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A step whose request is durable and not sent yet."""

    frame: Frame
    sending: Sending


@dataclass(frozen=True)
class Inquire:
    """Before anything goes on, a provider is asked what became of this attempt."""

    attempt_id: str


@dataclass(frozen=True, kw_only=True)
class Begun:
    """The session is ours. ``unfinished``: its newest step has calls to settle before anything else."""

    held: Held
    unfinished: str | None
    woken_at: datetime | None
    """When the wake that led here was enqueued, if it is known."""


def begin(*, session_id: str, worker_id: str, now: datetime) -> Begun | ownership.Refusal:
    """Take the session and promote what is pending, in one transaction.

    A step whose calls waited for a person comes first, and nothing is promoted before it has ended. The
    wake that led here is over with this transaction, whatever it answers: an admission that commits
    later enqueues a new one. Raises log.SessionGone.
    """
    with session_transaction(session_id, now=now) as tx:
        woken_at = tx.session.wake_enqueued_at
        tx.set(wake_enqueued_at=None)
        taken = ownership.take(tx, worker_id=worker_id)
        if isinstance(taken, ownership.Refusal):
            return taken
        unfinished = open_message(session_id)
        if unfinished is None and not tx.session.inquiry:
            _promote(tx)
        return Begun(held=taken, unfinished=unfinished, woken_at=woken_at)


def open_message(session_id: str) -> str | None:
    """The newest message whose step has not ended."""
    newest = statements.first(
        SessionMessage, {"session_id": session_id, "completed_at": None}, order_by="-seq"
    )
    return None if newest is None else newest.pk


def proceed(tx: SessionTransaction) -> bool:
    """At the end of a step: serve a Stop, promote what comes next, or release. False: released.

    A session that was parked meanwhile is left to people, whatever is pending.
    """
    if is_asked_to_stop(tx.session):
        return stop(tx)
    if tx.session.parked:
        ownership.give_up(tx)
        return False
    if tx.session.inquiry or _promote(tx) or tx.session.owed_at is not None:
        return True
    return not ownership.release(tx)


def hand_on(tx: SessionTransaction) -> None:
    """Release at a shutdown, with a wake for whoever comes next if anything is left to do."""
    if is_asked_to_stop(tx.session):
        stop(tx)
    ownership.give_up(tx)
    if tx.session.owed_at is not None or inbox.is_due(tx.session, now=tx.now):
        wakes.enqueue(tx)


def stop(tx: SessionTransaction, *, message: str | None = None) -> bool:
    """Serve the Stop that was requested: nothing is owed, what was pending then waits. False: released.

    A user's prompt that came after the request goes through, and with it what waited before it. So does a
    resume that came while the work was already being cancelled: a new attempt is owed.
    """
    session = tx.session
    asked_at = tx.head_seq if session.interrupt_seq is None else session.interrupt_seq
    is_resumed, resume = session.interrupt_fence is None, session.interrupt_resume
    tx.set(interrupt_fence=None, interrupt_seq=None, interrupt_resume=False)
    tx.append(ExecutionInterrupted(message=message, reason="user"))
    inbox.clear(tx)
    if is_resumed:
        inbox.owe(tx, not_before=tx.now)
        return proceed(tx)
    if resume:
        inbox.promote_steers(tx)
    has_newer = inbox.wants_wake(session, admitted_seq__gt=asked_at)
    if not has_newer and inbox.has_pending(session.pk, up_to=asked_at):
        inbox.pause(tx, up_to=asked_at)
    if has_newer or session.owed_at is not None:
        return proceed(tx)
    ownership.give_up(tx)
    return False


def outcome_unknown(tx: SessionTransaction, unknown: hooks.Unknown) -> None:
    """Let policy decide in this transaction; without one it is left to people, and what waits is held.

    Who asked to stop is not answered with a continuation: serving the Stop holds what waits.
    """
    if is_asked_to_stop(tx.session):
        return
    if not hooks.outcome_unknown(tx, unknown):
        inbox.hold_undecided(tx)


def _promote(tx: SessionTransaction) -> bool:
    """Steers join what is owed; a queued input starts only when nothing is."""
    if tx.session.owed_at is not None:
        return bool(inbox.promote_steers(tx))
    return bool(inbox.promote(tx))


def is_asked_to_stop(session: Session) -> bool:
    """Whether a Stop was requested that its owner has not served yet."""
    return session.interrupt_fence is not None and session.interrupt_fence == session.fence


# Preparing


NextRequest = Prepared | Inquire | retries.Retry | bool
"""What there is to do; a retry whose time has not come; or whether to go on draining without a request."""


def prepare(
    *, held: Held, toolset: Toolset, now: datetime, retry: retries.Retry | None = None
) -> NextRequest:
    """Make the next request durable: ``step.started`` and ``attempt.prepared`` in one transaction.

    A retry adds an attempt to the message that is open, and is answered as it is before its time. While an
    inquiry is owed nothing is prepared, and its attempt is returned. Answers whether to go on draining
    instead, when the step ended before there was a request: a Stop was asked for, or none can be made,
    whatever the reason; the message says it. Raises FenceLost, SessionGone or a database error.
    """
    try:
        return _prepare(held, toolset=toolset, now=now, retry=retry)
    except (InvalidValue, registry.ModelError) as unusable:
        detail = str(unusable)
    except (FenceLost, SessionGone, DatabaseError, InterfaceError):
        raise
    except Exception as fault:  # noqa: BLE001 - left alone, it would come again until the session is parked
        faults.tell("step.not_prepared", fault, held)
        detail = faults.NOT_MADE
    return _fail_unprepared(held, detail=detail, now=now, retry=retry)


def _prepare(held: Held, *, toolset: Toolset, now: datetime, retry: retries.Retry | None) -> NextRequest:
    session = statements.first(Session, {"pk": held.session_id})
    if session is not None and session.inquiry:
        return Inquire(session.inquiry)
    agent, provider, model, traits = _configured(session, toolset)
    has_steps_left = _has_steps_left(session, agent, is_retry=retry is not None)
    frame = Frame(
        message_id=identity.new_message_id() if retry is None else retry.message_id,
        agent=agent,
        toolset=toolset,
        has_steps_left=has_steps_left,
        can_call=traits.tools,
    )
    request = _request(held, frame=frame, model=model, max_output_tokens=traits.max_output_tokens)
    sending = Sending(provider=provider, request=request, ordinal=1 if retry is None else retry.ordinal)
    digest = provider.digest(request)
    with session_transaction(held.session_id, now=now, held=held) as tx:
        if is_asked_to_stop(tx.session):
            return _stop_unprepared(tx, retry)
        if retry is not None and retry.at > now:
            return retry
        inbox.clear(tx)
        if retry is None:
            _start_step(tx, message_id=frame.message_id, agent=agent.name, model=model)
        tx.append(_prepared(frame, sending, digest))
    return Prepared(frame=frame, sending=sending)


def _configured(session: Session | None, toolset: Toolset) -> tuple[AgentChoice, Provider, str, Traits]:
    if session is None:
        raise InvalidValue(field="session", detail="The session was deleted.")
    if toolset.fault:
        raise InvalidValue(field="tools", detail=toolset.fault)
    provider, _ = registry.resolve(session.model)
    return get_agent(session.agent), provider, session.model, registry.traits(session.model)


def _has_steps_left(session: Session | None, agent: AgentChoice, *, is_retry: bool) -> bool:
    """Whether another step may follow this one; a retry is the same step again."""
    made = 0 if session is None else session.step_count
    return made + (0 if is_retry else 1) < agent.steps


def _request(held: Held, *, frame: Frame, model: str, max_output_tokens: int | None) -> ModelRequest:
    """The last step offers no tools and says so. A model that cannot call any is offered none."""
    offered = [
        tool.definition
        for tool in frame.toolset.tools.values()
        if frame.has_steps_left and frame.can_call and frame.agent.mode_of(tool.name) != "deny"
    ]
    provider, _, name = model.partition(":")
    return ModelRequest(
        attempt=identity.new_attempt_id(),
        model=name,
        turns=history.lower(
            history.select(held.session_id), model=model, is_last_step=not frame.has_steps_left
        ),
        system=frame.agent.system,
        tools=tuple(offered),
        hosted_tools=tuple(frame.agent.hosted_tools.get(provider, ()))
        if frame.has_steps_left and frame.can_call
        else (),
        max_output_tokens=max_output_tokens,
        earlier_attempts=history.attempts_for_newest_prompt(held.session_id),
    )


def _prepared(frame: Frame, sending: Sending, digest: str) -> AttemptPrepared:
    return AttemptPrepared(
        attempt=sending.request.attempt,
        message=frame.message_id,
        purpose="step",
        ordinal=sending.ordinal,
        provider=sending.provider.name,
        model=sending.request.model,
        request_digest=digest,
        hosted_tools=bool(sending.request.hosted_tools),
    )


def _start_step(tx: SessionTransaction, *, message_id: str, agent: str, model: str) -> None:
    tx.set(step_count=tx.session.step_count + 1)
    tx.append(StepStarted(message=message_id, agent=agent, model=model, step=tx.session.step_count))


def _fail_unprepared(held: Held, *, detail: str, now: datetime, retry: retries.Retry | None) -> bool:
    """The step fails before a request could be made, and nothing is owed for it any more."""
    message_id = identity.new_message_id() if retry is None else retry.message_id
    error = StepError(reason="configuration", message=detail)
    with session_transaction(held.session_id, now=now, held=held) as tx:
        inbox.clear(tx)
        if retry is None:
            _start_step(tx, message_id=message_id, agent=tx.session.agent, model=tx.session.model)
        tx.append(StepFailed(message=message_id, outcome="failed", error=error))
        return proceed(tx)


def _stop_unprepared(tx: SessionTransaction, retry: retries.Retry | None) -> bool:
    if retry is None:
        return stop(tx)
    tx.append(interrupted(retry.message_id, "user"))
    return stop(tx, message=retry.message_id)


def give_up_retry(*, held: Held, retry: retries.Retry, now: datetime) -> bool:
    """A shutdown ends the wait for a retry: the message is closed, the run stays owed for its time."""
    with session_transaction(held.session_id, now=now, held=held) as tx:
        tx.append(interrupted(retry.message_id, "shutdown"))
        tx.append(ExecutionInterrupted(message=retry.message_id, reason="shutdown"))
        hand_on(tx)
    return False


def frame_of(*, message_id: str, toolset: Toolset) -> Frame:
    """What a step works with whose calls waited for a person."""
    message = SessionMessage.objects.select_related("session").get(pk=message_id)
    agent = find_agent(message.agent) or get_agent(DEFAULT)
    return Frame(
        message_id=message_id,
        agent=agent,
        toolset=toolset,
        has_steps_left=message.session.step_count < agent.steps,
    )


def interrupted(
    message_id: str, reason: Literal["user", "shutdown"], *, usage: Usage | None = None
) -> StepFailed:
    """The end of a step that somebody stopped, with what its model is to be told."""
    by_user = reason == "user"
    return StepFailed(
        message=message_id,
        outcome="interrupted",
        error=StepError(
            reason="interrupted" if by_user else "shutdown",
            message="Stopped by the user." if by_user else "The server was restarted.",
        ),
        notice=history.notice_for("interrupted" if by_user else "shutdown"),
        usage=usage,
    )


# Looking


def to_cancel(*, held: Sequence[Held]) -> set[Held]:
    """Those whose drain must be cancelled: a Stop waits, or they are lost or deleted."""
    rows = Session.objects.filter(pk__in=[each.session_id for each in held]).values_list(
        "pk", "owner_id", "fence", "interrupt_fence"
    )
    going_on = {
        (session_id, owner_id, fence)
        for session_id, owner_id, fence, interrupt_fence in rows
        if interrupt_fence != fence
    }
    return {each for each in held if (each.session_id, each.worker_id, each.fence) not in going_on}


def rewake(*, session_id: str, now: datetime) -> None:
    """Put a wake back that this process cannot serve any more. Raises SessionGone."""
    with session_transaction(session_id, now=now) as tx:
        wakes.enqueue(tx)
