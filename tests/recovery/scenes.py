"""Sessions with something to decide, written as a worker would have left them."""

from collections.abc import Sequence
from datetime import datetime

from schema.attempts import AttemptError, StepError
from schema.events import (
    AttemptDispatched,
    AttemptPrepared,
    AttemptSettled,
    AttemptUnknown,
    Effect,
    EventData,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolApprovalRequested,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolSucceeded,
)
from sessions_app import identity
from sessions_app.log import session_transaction
from tests.support import world

CUT = AttemptError(error_class="ambiguous", reason="cut", message="The line was cut.")


def write(session_id: str, events: Sequence[EventData], *, now: datetime = world.NOW) -> None:
    with session_transaction(session_id, now=now) as tx:
        for event in events:
            tx.append(event)


def say(session_id: str, text: str = "Hello", *, now: datetime = world.NOW) -> str:
    """A prompt in the transcript, whose run has begun; returns its message."""
    message = world.prompt(session_id, text, now=now)
    held = world.take(session_id, now=now)
    world.promote(held, now=now)
    rest(session_id)
    return message


def rest(session_id: str) -> None:
    """Nobody owns the session, nothing is owed, no wake is on its way."""
    world.change(session_id, owner=None, owed_at=None)
    world.forget_wakes(session_id)


def answer(session_id: str, text: str = "Hi", *, now: datetime = world.NOW) -> str:
    """A complete answer; returns its message."""
    message, part, attempt = begin(session_id, now=now)
    write(
        session_id,
        [
            TextStarted(message=message, part=part, index=0),
            TextEnded(message=message, part=part, text=text),
            AttemptSettled(
                attempt=attempt, message=message, outcome="completed", finish="stop", may_be_billed=True
            ),
            StepEnded(message=message, finish="stop"),
        ],
        now=now,
    )
    return message


def begin(session_id: str, *, hosted: bool = False, now: datetime = world.NOW) -> tuple[str, str, str]:
    """A step whose request is on the wire: message, the id of a part to come, attempt."""
    message, attempt = identity.new_message_id(), identity.new_attempt_id()
    write(
        session_id,
        [
            StepStarted(message=message, agent="default", model="demo:scripted", step=1),
            AttemptPrepared(
                attempt=attempt,
                message=message,
                purpose="step",
                ordinal=1,
                provider="demo",
                model="scripted",
                request_digest="d" * 64,
                hosted_tools=hosted,
            ),
            AttemptDispatched(attempt=attempt, message=message),
        ],
        now=now,
    )
    return message, identity.new_part_id(), attempt


def unknown_attempt(
    session_id: str, *, received: str = "", hosted: bool = False, now: datetime = world.NOW
) -> str:
    """An attempt whose outcome is unknown, its step closed."""
    message, part, attempt = begin(session_id, hosted=hosted, now=now)
    text: list[EventData] = []
    if received:
        text = [
            TextStarted(message=message, part=part, index=0),
            TextEnded(message=message, part=part, text=received),
        ]
    write(
        session_id,
        [
            *text,
            AttemptUnknown(attempt=attempt, message=message, error=CUT),
            StepFailed(
                message=message, outcome="unknown", error=StepError(reason="cut", message="The line was cut.")
            ),
        ],
        now=now,
    )
    return attempt


def _called(
    session_id: str, name: str, effect: Effect, *, ask: bool = False, now: datetime = world.NOW
) -> tuple[str, str]:
    message, part, attempt = begin(session_id, now=now)
    write(
        session_id,
        [
            ToolInputStarted(message=message, part=part, index=0, call_id="call-1", name=name),
            ToolInputEnded(message=message, part=part, raw='{"a": 1}'),
            AttemptSettled(
                attempt=attempt, message=message, outcome="completed", finish="tool_calls", may_be_billed=True
            ),
            ToolApprovalRequested(
                message=message,
                part=part,
                input={"a": 1},
                input_digest="1" * 64,
                effect=effect,
                because="agent",
            )
            if ask
            else ToolCalled(message=message, part=part, input={"a": 1}, input_digest="1" * 64, effect=effect),
        ],
        now=now,
    )
    return message, part


def waiting_call(session_id: str, name: str = "send_mail", *, now: datetime = world.NOW) -> str:
    """A call that waits for a person's approval."""
    return _called(session_id, name, "side_effect", ask=True, now=now)[1]


def unknown_call(session_id: str, name: str = "send_mail", *, now: datetime = world.NOW) -> str:
    """A call that was entered and did not return, its step closed."""
    message, part = _called(session_id, name, "side_effect", now=now)
    write(
        session_id,
        [
            ToolFailed(message=message, part=part, error="Tool execution interrupted", unknown=True),
            StepFailed(
                message=message, outcome="interrupted", error=StepError(reason="crash", message="It died.")
            ),
        ],
        now=now,
    )
    return part


def finished_call(
    session_id: str, output: str, *, overflow: str | None = None, now: datetime = world.NOW
) -> str:
    """A call that returned, its step ended."""
    message, part = _called(session_id, "lookup", "read", now=now)
    write(
        session_id,
        [
            ToolSucceeded(message=message, part=part, output=output, overflow=overflow),
            StepEnded(message=message, finish="tool_calls"),
        ],
        now=now,
    )
    return part
