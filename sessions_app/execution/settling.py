"""Settling the calls of a step whose attempt completed: entered, asked about, failed, and the step's end.

Everything here runs in the owner's transaction. The rows are read anew each time, because a person may
have answered meanwhile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from schema.attempts import Usage
from schema.events import (
    StepEnded,
    ToolApprovalRequested,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
)
from sessions_app import inbox, ownership
from sessions_app.execution import planning, stages
from sessions_app.execution.planning import Ask, Enter, Plan, Refuse
from sessions_app.log import SessionTransaction
from sessions_app.models import MessagePart, ProviderAttempt, statements
from sessions_app.tools import calls, overflow


@dataclass(frozen=True, kw_only=True)
class Result:
    """How an entered call ended."""

    part_id: str
    output: overflow.Bounded | None = None
    error: str = ""
    is_unknown: bool = False


@dataclass(frozen=True)
class Entering:
    """These calls are durable and are entered now."""

    calls: tuple[Enter, ...]


@dataclass(frozen=True)
class Settled:
    """Nothing of the step runs. ``goes_on``: the drain continues; else the session was released."""

    goes_on: bool


Next = Entering | Settled


@dataclass(frozen=True, kw_only=True)
class CallMade:
    """A call as the stream left it."""

    part_id: str
    call_id: str
    name: str
    raw: str
    hosted: bool
    is_cut_short: bool = False
    """The answer ended at its limit before the arguments did; none at all may be the beginning of some."""


def plan_calls(tx: SessionTransaction, made: Sequence[CallMade], frame: stages.Frame) -> tuple[Enter, ...]:
    """Decide every local call of the answer, store what was decided, return those to enter.

    Once a Stop was requested nothing is decided: ``go_on`` ends these calls as not run.
    """
    if stages.is_asked_to_stop(tx.session):
        return ()
    entering = []
    seen: set[str] = set()
    for call in made:
        decided = _decide(call, frame, is_repeated=call.call_id in seen)
        seen.add(call.call_id)
        entering += _store(tx, decided, frame.message_id)
    return tuple(entering)


def _decide(call: CallMade, frame: stages.Frame, *, is_repeated: bool) -> Plan:
    if is_repeated:
        return Refuse(part_id=call.part_id, error=planning.REPEATED_ID)
    if call.is_cut_short:
        return Refuse(part_id=call.part_id, error=planning.CUT_SHORT)
    return planning.plan(
        part_id=call.part_id,
        name=call.name,
        raw=call.raw,
        toolset=frame.toolset,
        agent=frame.agent,
        has_steps_left=frame.has_steps_left,
    )


def _store(tx: SessionTransaction, decided: Plan, message_id: str) -> list[Enter]:
    if isinstance(decided, Refuse):
        tx.append(ToolFailed(message=message_id, part=decided.part_id, error=decided.error, unknown=False))
        return []
    earlier = _unknown_twin(tx, decided)
    if isinstance(decided, Ask) or earlier is not None:
        _ask(tx, decided, message_id, earlier)
        return []
    _call(tx, decided, message_id)
    return [decided]


def _unknown_twin(
    tx: SessionTransaction, decided: Enter | Ask, *, since: datetime | None = None
) -> str | None:
    """The newest call with the same input whose effect may have happened and was not ruled out.

    With ``since``: among those that became unknown later.
    """
    if decided.tool.effect != "side_effect":
        return None
    twins = MessagePart.objects.filter(
        session_id=tx.session.pk, input_digest=decided.digest, unknown_at__isnull=False
    ).order_by("-unknown_at")
    if since is not None:
        twins = twins.filter(unknown_at__gt=since)
    for part_id, decision in twins.values_list("pk", "decision"):
        if decision is None or decision.get("action") != "mark_not_done":
            return part_id
    return None


def _ask(tx: SessionTransaction, decided: Enter | Ask, message_id: str, earlier: str | None) -> None:
    because: Literal["agent", "duplicate"] = "agent" if earlier is None else "duplicate"
    tx.append(
        ToolApprovalRequested(
            message=message_id,
            part=decided.part_id,
            input=decided.input,
            input_digest=decided.digest,
            effect=decided.tool.effect,
            because=because,
            earlier=earlier,
        )
    )


def _call(tx: SessionTransaction, decided: Enter, message_id: str) -> None:
    annotations = decided.tool.annotations
    tx.append(
        ToolCalled(
            message=message_id,
            part=decided.part_id,
            input=decided.input,
            input_digest=decided.digest,
            effect=decided.tool.effect,
            annotations=None if annotations is None else dict(annotations),
        )
    )


def store_results(tx: SessionTransaction, message_id: str, results: Iterable[Result]) -> None:
    for result in results:
        if result.output is None:
            tx.append(
                ToolFailed(
                    message=message_id, part=result.part_id, error=result.error, unknown=result.is_unknown
                )
            )
            continue
        beyond = result.output.overflow
        stored = None
        if beyond is not None:
            stored = overflow.store(session_id=tx.session.pk, overflow=beyond, now=tx.now)
        tx.append(
            ToolSucceeded(message=message_id, part=result.part_id, output=result.output.text, overflow=stored)
        )


def go_on(tx: SessionTransaction, frame: stages.Frame, *, shutting_down: bool) -> Next:
    """Enter what was approved, fail what was denied; else wait for a person, or end the step.

    Call it when nothing of the step runs, or whenever a call ended: ``Settled`` is only answered when no
    call is running. Once a Stop was requested nothing is entered and nobody is asked any more.
    """
    is_stopped = stages.is_asked_to_stop(tx.session)
    unfinished = statements.fetch(
        MessagePart,
        {"message_id": frame.message_id, "kind": "tool", "ended_at": None},
        order_by="index",
    )
    entering: list[Enter] = []
    if not shutting_down and not is_stopped:
        answered = [part for part in unfinished if _is_answered(part)]
        unfinished = [part for part in unfinished if not _is_answered(part)]
        entering, asked_again = _act_on(tx, answered, frame)
        unfinished += asked_again
    if entering or any(part.state == "running" for part in unfinished):
        return Entering(tuple(entering))
    if unfinished and is_stopped:
        return Settled(_stop(tx, frame, shutting_down=shutting_down))
    if unfinished:
        return Settled(_wait(tx, shutting_down=shutting_down))
    return Settled(_end(tx, frame, shutting_down=shutting_down))


def _is_answered(part: MessagePart) -> bool:
    return part.state == "pending" and part.approval in ("approved", "denied")


def _act_on(
    tx: SessionTransaction, answered: Sequence[MessagePart], frame: stages.Frame
) -> tuple[list[Enter], list[MessagePart]]:
    """Calls that a person answered: the denied ones fail here, the approved ones are entered.

    Those are asked about again whose like became unknown only after they were approved: nobody who said yes
    knew of it.
    """
    entering, asked_again = [], []
    for part in answered:
        if part.approval == "denied":
            error, decided = planning.DENIED, None
        else:
            error, decided = _approved(part, frame)
        if decided is None:
            tx.append(ToolFailed(message=frame.message_id, part=part.pk, error=error, unknown=False))
            continue
        earlier = _unknown_twin(tx, decided, since=part.decided_at)
        if earlier is not None:
            _ask(tx, decided, frame.message_id, earlier)
            asked_again.append(part)
            continue
        _call(tx, decided, frame.message_id)
        entering.append(decided)
    return entering, asked_again


def _approved(part: MessagePart, frame: stages.Frame) -> tuple[str, Enter | None]:
    """What was approved is what is entered: the stored input, at the tool of that name."""
    tool = frame.toolset.find(part.name)
    if tool is None:
        return frame.toolset.missing(part.name), None
    return "", Enter(part_id=part.pk, tool=tool, input=part.input or {}, digest=part.input_digest)


def _stop(tx: SessionTransaction, frame: stages.Frame, *, shutting_down: bool) -> bool:
    """A Stop came before anybody could be asked, or the answer be acted on: what is left was not run."""
    calls.fail_unfinished(tx, message_id=frame.message_id)
    tx.append(stages.interrupted(frame.message_id, "user"))
    if shutting_down:
        stages.hand_on(tx)
        return False
    return stages.stop(tx, message=frame.message_id)


def _wait(tx: SessionTransaction, *, shutting_down: bool) -> bool:
    """The step waits for a person and holds no worker; approved ones a shutdown left are owed."""
    if shutting_down and has_answers(tx):
        inbox.owe(tx, not_before=tx.now)
        stages.hand_on(tx)
    else:
        inbox.clear(tx)
        ownership.give_up(tx)
    return False


def asks_somebody(tx: SessionTransaction, message_id: str) -> bool:
    """Whether a call of the step waits for a person, or for a worker to act on the answer, and nobody
    stopped it."""
    answerable = MessagePart.objects.filter(message_id=message_id, state="pending").exclude(approval="")
    return answerable.exists() and not stages.is_asked_to_stop(tx.session)


def has_answers(tx: SessionTransaction) -> bool:
    """Whether a person answered a call, and no worker acted on it yet."""
    return MessagePart.objects.filter(
        session_id=tx.session.pk, ended_at=None, approval__in=("approved", "denied")
    ).exists()


def _end(tx: SessionTransaction, frame: stages.Frame, *, shutting_down: bool) -> bool:
    """All calls have ended: the step ends, and a run is owed if the model is to read the results."""
    attempt = statements.fetch(
        ProviderAttempt,
        {"message_id": frame.message_id, "outcome": "completed"},
        order_by="-ordinal",
        limit=1,
    )[0]
    usage = None if attempt.usage is None else Usage.model_validate(attempt.usage)
    tx.append(StepEnded(message=frame.message_id, finish=attempt.finish, usage=usage))
    if frame.has_steps_left:
        inbox.owe(tx, not_before=tx.now)
    if shutting_down:
        stages.hand_on(tx)
        return False
    return stages.proceed(tx)
