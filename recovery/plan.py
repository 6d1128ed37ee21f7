"""The plan of one recovery: a pure function from what was found to what is to be done."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Policy = Literal["continue", "ask", "off"]
GoOn = Literal["nothing", "owe", "inquire", "continue", "ask", "off", "park", "paused"]


@dataclass(frozen=True, kw_only=True)
class FoundAttempt:
    """An attempt between prepared and streaming."""

    id: str
    message_id: str | None
    purpose: str
    state: str
    has_response: bool
    hosted_tools: bool
    can_be_asked: bool = False
    """Its provider keeps the response and can be asked what became of it."""
    is_decided: bool = False
    """Somebody decided about it before it was asked about anew: it stands, and nothing is owed for it."""


@dataclass(frozen=True, kw_only=True)
class FoundPart:
    """A part that has not ended. ``text`` is its checkpoint."""

    id: str
    message_id: str
    kind: str
    state: str
    approval: str
    hosted: bool
    effect: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class FoundMessage:
    """An assistant message whose step has not ended."""

    id: str
    seq: int
    has_completed_attempt: bool


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A session as it was claimed."""

    policy: Policy
    continues_after_effects: bool
    is_over_budget: bool
    is_asked_to_stop: bool
    is_wanted_again: bool = False
    """A person let it run again after it was parked with work unsettled."""
    is_run_owed: bool
    has_waiting_steer: bool
    """A user's steer that is pending, not held, and wants a wake."""
    newest_turn_seq: int
    """The seq of the newest message a model reads; an open message behind it was superseded."""
    messages: Sequence[FoundMessage] = ()
    parts: Sequence[FoundPart] = ()
    attempts: Sequence[FoundAttempt] = ()


@dataclass(frozen=True, kw_only=True)
class EndText:
    part: FoundPart


@dataclass(frozen=True, kw_only=True)
class FailCall:
    part: FoundPart
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class SettleAttempt:
    """Never sent, or unknown."""

    attempt: FoundAttempt
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class EndStep:
    """All calls of a completed attempt have an end: the step ends."""

    message: FoundMessage


@dataclass(frozen=True, kw_only=True)
class FailStep:
    message: FoundMessage
    outcome: Literal["interrupted", "unknown"]
    superseded: bool


Action = EndText | FailCall | SettleAttempt | EndStep | FailStep


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to settle, in order, and how to go on."""

    actions: tuple[Action, ...]
    go_on: GoOn
    inquiry: str = ""
    """The attempt whose provider is asked before anything goes on."""
    unknown_attempts: tuple[str, ...] = ()
    unknown_calls: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    """Unknown attempts that no step waits for: nobody is asked about them."""
    admits_continuation: bool = False
    found: dict[str, int] = field(default_factory=dict)


def make(snapshot: Snapshot) -> Plan:
    """Settle everything that is unfinished; go on only if something is owed, and as policy says.

    The same snapshot gives the same plan. What waits for a person's approval, or got it, stays as it is.
    """
    newest = _newest(snapshot)
    calls = [_fail(part) for part in snapshot.parts if _ends_here(part, snapshot, newest)]
    attempts = [
        SettleAttempt(attempt=attempt, unknown=attempt.state != "prepared") for attempt in snapshot.attempts
    ]
    steps = [_step(message, snapshot, newest) for message in snapshot.messages]
    actions: list[Action] = [
        *(EndText(part=part) for part in snapshot.parts if part.kind != "tool"),
        *calls,
        *attempts,
        *(step for step in steps if step is not None),
    ]
    unknown_attempts = tuple(each.attempt.id for each in attempts if _is_open_question(each))
    unknown_calls = tuple(call.part.id for call in calls if call.unknown)
    inquiry = _find_inquiry(newest, calls, attempts)
    go_on = _go_on(snapshot, newest, calls, attempts, inquiry)
    return Plan(
        actions=tuple(actions),
        go_on=go_on,
        inquiry=inquiry if go_on == "inquire" else "",
        unknown_attempts=unknown_attempts,
        unknown_calls=unknown_calls,
        abandoned=tuple(
            each.attempt.id for each in attempts if each.unknown and each.attempt.purpose != "step"
        ),
        admits_continuation=go_on == "continue" and not snapshot.has_waiting_steer,
        found={
            "attempts": len(snapshot.attempts),
            "tools": sum(part.kind == "tool" for part in snapshot.parts),
            "parts": sum(part.kind != "tool" for part in snapshot.parts),
        },
    )


def _newest(snapshot: Snapshot) -> FoundMessage | None:
    """The open message that nothing superseded, if there is one."""
    newest = max(snapshot.messages, key=lambda message: message.seq, default=None)
    return newest if newest is not None and newest.seq >= snapshot.newest_turn_seq else None


def _ends_here(part: FoundPart, snapshot: Snapshot, newest: FoundMessage | None) -> bool:
    """Every call but those that a person was asked about, in the step that is still the newest.

    A Stop ends these too: a late answer must find nothing to let loose.
    """
    if part.kind != "tool":
        return False
    is_answerable = part.state == "pending" and part.approval != ""
    stays = is_answerable and newest is not None and part.message_id == newest.id
    return snapshot.is_asked_to_stop or not stays


def _fail(part: FoundPart) -> FailCall:
    """Entered, or run by the provider: it may have had its effect, unless it only reads."""
    was_entered = part.state == "running" or part.hosted
    return FailCall(part=part, unknown=was_entered and part.effect != "read")


def _step(
    message: FoundMessage, snapshot: Snapshot, newest: FoundMessage | None
) -> EndStep | FailStep | None:
    if message is not newest:
        return FailStep(message=message, outcome="interrupted", superseded=True)
    if message.has_completed_attempt and not snapshot.is_asked_to_stop:
        return None if _waits(snapshot, message) else EndStep(message=message)
    was_sent = any(
        attempt.message_id == message.id and attempt.state != "prepared" for attempt in snapshot.attempts
    )
    return FailStep(message=message, outcome="unknown" if was_sent else "interrupted", superseded=False)


def _waits(snapshot: Snapshot, message: FoundMessage) -> bool:
    return any(True for _ in _answerable(snapshot.parts, message))


def _answerable(parts: Iterable[FoundPart], message: FoundMessage) -> Iterable[FoundPart]:
    return (
        part
        for part in parts
        if part.kind == "tool"
        and part.message_id == message.id
        and part.state == "pending"
        and part.approval != ""
    )


def _go_on(
    snapshot: Snapshot,
    newest: FoundMessage | None,
    calls: Sequence[FailCall],
    attempts: Sequence[SettleAttempt],
    inquiry: str,
) -> GoOn:
    if snapshot.is_over_budget:
        return "park"
    if snapshot.is_asked_to_stop:
        return "paused"
    is_unknown = any(each.unknown for each in calls) or any(_is_open_question(each) for each in attempts)
    if is_unknown:
        chosen = by_policy(
            policy=snapshot.policy,
            continues_after_effects=snapshot.continues_after_effects,
            may_repeat_an_effect=_may_repeat_an_effect(calls, attempts),
            can_be_asked=inquiry != "",
        )
        return "owe" if chosen in ("ask", "off") and snapshot.is_wanted_again else chosen
    if newest is not None and _waits(snapshot, newest):
        answered = any(part.approval != "waiting" for part in _answerable(snapshot.parts, newest))
        return "owe" if answered else "nothing"
    is_left = newest is None or any(
        each.attempt.is_decided and each.attempt.message_id == newest.id for each in attempts
    )
    return "nothing" if is_left and not snapshot.is_run_owed else "owe"


def _is_open_question(settled: SettleAttempt) -> bool:
    """Whether policy, or a person, has to choose what follows."""
    return settled.unknown and settled.attempt.purpose == "step" and not settled.attempt.is_decided


def _find_inquiry(
    newest: FoundMessage | None, calls: Sequence[FailCall], attempts: Sequence[SettleAttempt]
) -> str:
    """The unknown attempt whose answer, if its provider tells it, leaves nothing unknown; or nothing."""
    asked = [each.attempt for each in attempts if each.unknown and each.attempt.can_be_asked]
    if newest is None or len(asked) != 1 or asked[0].message_id != newest.id:
        return ""
    elsewhere = any(call.unknown and call.part.message_id != newest.id for call in calls)
    return "" if elsewhere else asked[0].id


def by_policy(
    *, policy: Policy, continues_after_effects: bool, may_repeat_an_effect: bool, can_be_asked: bool
) -> GoOn:
    """How a session with an unknown outcome goes on, whether its process died of it or lives."""
    if policy == "off":
        return "off"
    if can_be_asked:
        return "inquire"
    return "ask" if may_repeat_an_effect and not continues_after_effects else policy


def _may_repeat_an_effect(calls: Sequence[FailCall], attempts: Sequence[SettleAttempt]) -> bool:
    return any(
        call.unknown and is_repeatable_effect(effect=call.part.effect, hosted=call.part.hosted)
        for call in calls
    ) or any(each.unknown and each.attempt.hosted_tools for each in attempts)


def is_repeatable_effect(*, effect: str, hosted: bool) -> bool:
    """Whether a call of this kind, made once more, may have its effect once more."""
    return hosted or effect == "side_effect"
