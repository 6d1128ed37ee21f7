"""Any history of verbs that a session can live through, acted on the real database.

A move that does not apply where the story stands is left out, so that every list of moves is a story.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies

from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptAsked,
    AttemptDispatched,
    AttemptFirstOutput,
    AttemptIdentified,
    AttemptPrepared,
    AttemptResponseStarted,
    AttemptResumed,
    AttemptSettled,
    AttemptUnknown,
    EventData,
    ExecutionInterrupted,
    ReasoningEnded,
    ReasoningStarted,
    RetryScheduled,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolApprovalDecided,
    ToolApprovalRequested,
    ToolCalled,
    ToolDecided,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgress,
    ToolSucceeded,
)
from schema.problems import SessionBusy
from sessions_app import identity, inbox, ownership, sessions
from sessions_app.log import Held, session_transaction
from sessions_app.models import MessagePart, PartCheckpoint, ProviderAttempt, SessionInput, SessionMessage
from sessions_app.sessions import revert
from tests.support import world

Move = Callable[["Story", int], None]

_POLICIES: Final[tuple[Any, ...]] = ("", "ask", "off")
_MOVES: Final[dict[str, Move]] = {}

stories = strategies.lists(
    strategies.tuples(
        strategies.deferred(lambda: strategies.sampled_from(sorted(_MOVES))), strategies.integers(0, 5)
    ),
    max_size=40,
)
"""Lists of moves, to be given to ``Story.play``."""


def _move(act: Move) -> Move:
    _MOVES[act.__name__] = act
    return act


class Story:
    """One session and who acts on it."""

    def __init__(self, *, user_id: int, worker_id: str) -> None:
        self.session_id = world.session(user_id=user_id)
        self.worker_id = worker_id
        self.seconds = 0

    def play(self, moves: list[tuple[str, int]]) -> None:
        for name, choice in moves:
            self.seconds += 1
            _MOVES[name](self, choice)

    @property
    def now(self) -> Any:
        return world.after(self.seconds)

    def held(self) -> Held | None:
        row = world.row(self.session_id)
        if row.owner_id is None:
            return None
        return Held(session_id=row.pk, worker_id=row.owner_id, fence=row.fence)

    def write(self, *events: EventData) -> None:
        """Append as the owner; without one the story does not have these events."""
        held = self.held()
        if held is not None:
            with world.transaction(held, now=self.now) as tx:
                for event in events:
                    tx.append(event)

    def open_message(self) -> str | None:
        return (
            SessionMessage.objects.filter(session_id=self.session_id, type="assistant", completed_at=None)
            .values_list("pk", flat=True)
            .first()
        )

    def attempt(self, *states: str) -> ProviderAttempt | None:
        return ProviderAttempt.objects.filter(session_id=self.session_id, state__in=states).first()

    def part(self, **where: Any) -> MessagePart | None:
        return MessagePart.objects.filter(
            session_id=self.session_id, message_id=self.open_message(), **where
        ).first()

    def pending(self, choice: int) -> SessionInput | None:
        rows = list(world.pending(self.session_id))
        return rows[choice % len(rows)] if rows else None


# Users


@_move
def prompts(story: Story, choice: int) -> None:
    world.prompt(
        story.session_id,
        f"Text {story.seconds}",
        delivery="steer" if choice % 2 else "queue",
        wake=choice > 1,
        now=story.now,
    )


@_move
def goes_back(story: Story, choice: int) -> None:
    visible = SessionMessage.objects.filter(session_id=story.session_id, reverted_seq=None).order_by("-seq")
    message = next(iter(visible.values_list("pk", flat=True)[choice : choice + 1]), None)
    if message is not None:
        with contextlib.suppress(SessionBusy):
            revert.stage(session_id=story.session_id, message_id=message, now=story.now)


@_move
def goes_back_after_all_not(story: Story, choice: int) -> None:
    revert.clear(session_id=story.session_id, now=story.now)


@_move
def repeats(story: Story, choice: int) -> None:
    row: Any = story.pending(choice)
    if row is not None:
        world.prompt(
            story.session_id,
            row.text,
            message_id=row.pk,
            delivery=row.delivery_admitted,
            now=story.now,
        )


@_move
def withdraws(story: Story, choice: int) -> None:
    row = story.pending(choice)
    if row is not None:
        inbox.withdraw(session_id=story.session_id, message_id=row.pk, now=story.now)


@_move
def changes_delivery(story: Story, choice: int) -> None:
    row = story.pending(choice)
    if row is not None:
        inbox.change_delivery(
            session_id=story.session_id,
            message_id=row.pk,
            delivery="steer" if choice % 2 else "queue",
            now=story.now,
        )


@_move
def updates(story: Story, choice: int) -> None:
    sessions.update(
        session_id=story.session_id,
        now=story.now,
        title=f"Title {choice}",
        archived=bool(choice % 2),
        recovery_policy=_POLICIES[choice % 3],
        model=("demo:scripted", "openai:other")[choice % 2],
    )


@_move
def stops(story: Story, choice: int) -> None:
    sessions.interrupt(session_id=story.session_id, now=story.now, resume=bool(choice % 2))


@_move
def resumes(story: Story, choice: int) -> None:
    sessions.resume(session_id=story.session_id, now=story.now)


# The owner


@_move
def takes(story: Story, choice: int) -> None:
    with session_transaction(story.session_id, now=story.now) as tx:
        taken = ownership.take(tx, worker_id=story.worker_id)
        if isinstance(taken, Held):
            inbox.promote(tx)


@_move
def promotes(story: Story, choice: int) -> None:
    held = story.held()
    if held is not None:
        with world.transaction(held, now=story.now) as tx:
            (inbox.promote if choice % 2 else inbox.promote_steers)(tx)


@_move
def releases(story: Story, choice: int) -> None:
    held = story.held()
    if held is not None and story.open_message() is None:
        with world.transaction(held, now=story.now) as tx:
            ownership.release(tx)


@_move
def prepares(story: Story, choice: int) -> None:
    message = identity.new_message_id()
    if story.open_message() is None and story.held() is not None:
        story.write(
            StepStarted(message=message, agent="default", model="demo:scripted", step=1),
            _prepared(message, ordinal=1),
        )


def _prepared(message: str, *, ordinal: int) -> AttemptPrepared:
    return AttemptPrepared(
        attempt=identity.new_attempt_id(),
        message=message,
        purpose="step",
        ordinal=ordinal,
        provider="demo",
        model="scripted",
        request_digest="0" * 64,
    )


@_move
def retries(story: Story, choice: int) -> None:
    message, attempt = story.open_message(), story.attempt("prepared", "dispatched")
    if message is not None and attempt is not None:
        story.write(
            _settled(attempt, "not_sent"),
            RetryScheduled(message=message, attempt=2, at="2031-05-04T12:00:09Z", reason="network"),
            *([_prepared(message, ordinal=2)] if choice % 2 else []),
        )


@_move
def sends(story: Story, choice: int) -> None:
    attempt = story.attempt("prepared")
    if attempt is not None:
        story.write(
            AttemptDispatched(attempt=attempt.pk, message=attempt.message_id),
            AttemptResponseStarted(
                attempt=attempt.pk, message=attempt.message_id, status=200, provider_request_id="r" * 300
            ),
        )
        if choice:
            story.write(
                AttemptIdentified(
                    attempt=attempt.pk, message=attempt.message_id, provider_response_id="resp-1"
                )
            )


@_move
def receives(story: Story, choice: int) -> None:
    attempt = story.attempt("dispatched")
    if attempt is not None:
        story.write(
            AttemptFirstOutput(
                attempt=attempt.pk,
                message=attempt.message_id,
                provider_response_id="resp" if choice else None,
            )
        )


@_move
def opens_a_part(story: Story, choice: int) -> None:
    message = story.open_message()
    if message is None or story.held() is None:
        return
    part = identity.new_part_id()
    index = MessagePart.objects.filter(message_id=message).count()
    if choice < 2:
        story.write((TextStarted, ReasoningStarted)[choice](message=message, part=part, index=index))
        PartCheckpoint.objects.create(part_id=part, fence=world.row(story.session_id).fence, text="so f")
    else:
        story.write(
            ToolInputStarted(
                message=message,
                part=part,
                index=index,
                call_id=f"call-{index}",
                name="n" * 250,
                hosted=choice == 5,
            ),
            ToolInputEnded(message=message, part=part, raw='{"a": 1}', replay={"id": None}),
        )


@_move
def ends_a_part(story: Story, choice: int) -> None:
    part = story.part(state="open")
    if part is None:
        return
    if part.kind == "text":
        story.write(
            TextEnded(message=part.message_id, part=part.pk, text="So far so good", replay={"n": [None, 1]})
        )
    else:
        story.write(
            ReasoningEnded(
                message=part.message_id,
                part=part.pk,
                text="Because",
                complete=bool(choice % 2),
                replay={"sig": "x"},
            )
        )


@_move
def asks_for_approval(story: Story, choice: int) -> None:
    part = story.part(kind="tool", state="pending", approval="")
    if part is not None:
        story.write(
            ToolApprovalRequested(
                message=part.message_id, part=part.pk, input={"a": choice}, input_digest="1" * 64,
                effect="side_effect", because="agent", earlier="prt_earlier" if choice else None,
            )
        )  # fmt: skip


@_move
def answers(story: Story, choice: int) -> None:
    part = story.part(kind="tool", state="pending", approval="waiting")
    if part is not None:
        action: Any = "approve" if choice % 2 else "deny"
        story.write(
            ToolApprovalDecided(message=part.message_id, part=part.pk, action=action, by="ann", reason="so")
        )


@_move
def enters(story: Story, choice: int) -> None:
    part = story.part(kind="tool", state="pending", approval__in=("", "approved"))
    if part is not None:
        story.write(
            ToolCalled(
                message=part.message_id, part=part.pk, input={"a": choice}, input_digest="1" * 64,
                effect="side_effect", annotations={"hint": None} if choice else None,
            ),
            ToolProgress(message=part.message_id, part=part.pk, text="half"),
        )  # fmt: skip


@_move
def returns(story: Story, choice: int) -> None:
    part = story.part(kind="tool", state="running")
    if part is not None:
        story.write(
            ToolSucceeded(
                message=part.message_id, part=part.pk, output="out", replay={"k": 1} if choice else None
            )
        )


@_move
def fails_a_call(story: Story, choice: int) -> None:
    part = story.part(kind="tool", state__in=("pending", "running"))
    if part is not None:
        unknown = part.state == "running" and choice % 2 == 0
        story.write(
            ToolFailed(
                message=part.message_id, part=part.pk, error="Tool execution interrupted", unknown=unknown
            )
        )


@_move
def decides_a_call(story: Story, choice: int) -> None:
    part = MessagePart.objects.filter(
        session_id=story.session_id, unknown_at__isnull=False, decided_at=None
    ).first()
    if part is not None:
        story.write(
            ToolDecided(
                message=part.message_id, part=part.pk, action="mark_done", by="ann", policy=False,
                result={"seen": [None, choice]},
            )
        )  # fmt: skip


def _settled(attempt: ProviderAttempt, outcome: Any) -> AttemptSettled:
    return AttemptSettled(
        attempt=attempt.pk,
        message=attempt.message_id,
        outcome=outcome,
        finish="stop" if outcome == "completed" else None,
        usage=Usage(input_tokens=3, output_tokens=5),
        provider_response_id="resp-2",
        may_be_billed=outcome != "not_sent",
    )


@_move
def ends_the_step(story: Story, choice: int) -> None:
    message, attempt = story.open_message(), story.attempt("prepared", "dispatched", "streaming")
    if message is None:
        return
    if attempt is None or attempt.state == "prepared":
        story.write(*_fails(message, "interrupted"), ExecutionInterrupted(message=message, reason="user"))
    elif choice < 2:
        story.write(
            _settled(attempt, "completed"),
            StepEnded(message=message, finish="stop", usage=Usage(input_tokens=3)),
        )
    elif choice < 4:
        error = AttemptError(error_class="partial", reason="cut", message="Cut.", retry_after=0.5)
        story.write(
            AttemptUnknown(attempt=attempt.pk, message=message, error=error, usage=Usage(output_tokens=1)),
            *_fails(message, "unknown"),
        )
    else:
        story.write(_settled(attempt, "failed"), *_fails(message, "failed"))


@_move
def asks_what_became_of_it(story: Story, choice: int) -> None:
    attempt = (
        ProviderAttempt.objects.filter(session_id=story.session_id, state="unknown")
        .order_by("-prepared_at", "-pk")
        .first()
    )
    newest = (
        SessionMessage.objects.filter(session_id=story.session_id, type="assistant").order_by("-seq").first()
    )
    if attempt is None or attempt.message_id is None or newest is None:
        return
    told: EventData
    if choice < 2:
        told = AttemptAsked(
            attempt=attempt.pk, message=attempt.message_id, answer="forgotten", detail="Gone."
        )
    elif newest.pk == attempt.message_id and newest.state == "unknown":
        told = AttemptResumed(attempt=attempt.pk, message=newest.pk, keeps_parts=choice == 2)
    else:
        told = _settled(attempt, "completed")
    story.write(told)


def _fails(message: str, outcome: Any) -> tuple[EventData, ...]:
    error = StepError(reason="cut", message="Cut.", error_class="partial")
    return (
        StepFailed(
            message=message, outcome=outcome, error=error, notice="Cut." if outcome != "failed" else None
        ),
    )
