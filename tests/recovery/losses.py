"""Sessions whose owner is lost in the middle of something, made by the events that a drain writes."""

import itertools
from datetime import datetime
from typing import Any, Final, Self

from django_q.models import OrmQ

from recovery import discovery, recover, service
from recovery.models import RecoveryClaim
from recovery.recover import Discovered, Recovered
from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptDispatched,
    AttemptFirstOutput,
    AttemptPrepared,
    AttemptResponseStarted,
    AttemptSettled,
    AttemptUnknown,
    Effect,
    EventData,
    ReasoningStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextStarted,
    ToolApprovalRequested,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
)
from sessions_app import history, identity, inbox, ownership, sessions
from sessions_app.execution import checkpoints
from sessions_app.log import Held, session_transaction
from sessions_app.models import Agent, MessagePart, ProviderAttempt, Session, SessionMessage, Worker
from tests.support import world

MODEL: Final = "demo:scripted"
LATER: Final = world.after(60)
_NUMBERS: Final = itertools.count(1)


class Lost:
    """One session, its owner, and the step that is being written."""

    def __init__(self, *, owner: str = "", user_id: int | None = None, **arguments: Any) -> None:
        self.id = world.session(user_id=user_id, model=MODEL, **arguments)
        world.prompt(self.id, "Hello")
        self.owner = owner or world.worker().pk
        self.held: Held = world.take(self.id, self.owner)
        with world.transaction(self.held) as tx:
            inbox.promote(tx)
        world.forget_wakes(self.id)
        self.message = ""
        self.attempt = ""
        self._parts = 0

    def write(self, *events: EventData) -> None:
        with world.transaction(self.held) as tx:
            for event in events:
                tx.append(event)

    # What the owner does

    def prepared(self, *, ordinal: int = 1, hosted_tools: bool = False) -> Self:
        if ordinal == 1:
            self.message = identity.new_message_id()
            self.write(StepStarted(message=self.message, agent="default", model=MODEL, step=1))
        self.attempt = identity.new_attempt_id()
        self.write(
            AttemptPrepared(
                attempt=self.attempt, message=self.message, purpose="step", ordinal=ordinal, provider="demo",
                model="scripted", request_digest="d" * 64, hosted_tools=hosted_tools,
            )
        )  # fmt: skip
        with world.transaction(self.held) as tx:
            inbox.clear(tx)
        return self

    def dispatched(self, **how: Any) -> Self:
        self.prepared(**how)
        self.write(AttemptDispatched(attempt=self.attempt, message=self.message))
        return self

    def streaming(self, **how: Any) -> Self:
        self.dispatched(**how)
        self.write(
            AttemptResponseStarted(attempt=self.attempt, message=self.message, status=200),
            AttemptFirstOutput(attempt=self.attempt, message=self.message),
        )
        return self

    def text(self, so_far: str = "So far", *, kind: str = "text") -> Self:
        """An open part whose text was kept once."""
        part = identity.new_part_id()
        started = TextStarted if kind == "text" else ReasoningStarted
        self.write(started(message=self.message, part=part, index=self._next()))
        checkpoints.write(checkpoints=[checkpoints.Checkpoint(held=self.held, part_id=part, text=so_far)])
        return self

    def call(
        self, name: str = "tool", *, effect: Effect | None = None, hosted: bool = False, waits: bool = False
    ) -> str:
        """A call: entered if an effect is given, else only written. Returns its id."""
        part = identity.new_part_id()
        digest = f"digest-{name}"
        self.write(
            ToolInputStarted(
                message=self.message, part=part, index=self._next(), call_id=f"call-{part}", name=name,
                hosted=hosted,
            ),
            ToolInputEnded(message=self.message, part=part, raw='{"to": "ann"}'),
        )  # fmt: skip
        given: Any = {"message": self.message, "part": part, "input": {"to": "ann"}, "input_digest": digest}
        if waits:
            self.write(ToolApprovalRequested(**given, effect=effect or "side_effect", because="agent"))
        elif effect is not None:
            self.write(ToolCalled(**given, effect=effect))
        return part

    def completed(self) -> Self:
        """The attempt ended well; its calls may go on."""
        self.write(
            AttemptSettled(
                attempt=self.attempt, message=self.message, outcome="completed", finish="tool-calls",
                usage=Usage(input_tokens=3, output_tokens=4), may_be_billed=True,
            )
        )  # fmt: skip
        return self

    def calling(self, *calls: Effect | None) -> Self:
        """A whole answer with these calls."""
        self.streaming()
        for number, effect in enumerate(calls):
            self.call(f"tool-{number}", effect=effect)
        return self.completed()

    def unknown(self, **how: Any) -> Self:
        """An unknown attempt that nobody decided, in a step that ended and was left to people."""
        return self.dispatched(**how).unknown_again()

    def unknown_again(self) -> Self:
        """The open attempt ends unknown, and its step with it."""
        error = AttemptError(error_class="ambiguous", reason="cut", message="Lost.")
        self.write(AttemptUnknown(attempt=self.attempt, message=self.message, error=error))
        self._fail("unknown")
        return self

    def unknown_calls(self, *effects: Effect) -> list[str]:
        """A step that ended with unknown calls that nobody decided; returns their ids."""
        self.streaming()
        calls = [self.call(f"tool-{number}", effect=effect) for number, effect in enumerate(effects)]
        self.completed()
        for part in calls:
            self.write(ToolFailed(message=self.message, part=part, error="interrupted", unknown=True))
        self.write(StepEnded(message=self.message, finish="tool-calls"))
        return calls

    def ended(self) -> Self:
        self.streaming().completed()
        self.write(StepEnded(message=self.message, finish="stop"))
        return self

    def _fail(self, outcome: Any) -> None:
        self.write(
            StepFailed(
                message=self.message, outcome=outcome, error=StepError(reason="cut", message="Lost."),
                notice=history.notice_for(outcome),
            )
        )  # fmt: skip

    def _next(self) -> int:
        self._parts += 1
        return self._parts - 1

    # What becomes of the owner

    def dies(self, *, death: str = "proved") -> Self:
        Worker.objects.filter(pk=self.owner).update(dead_at=world.NOW, death=death)
        return self

    def released(self, *, hold: bool = False) -> Self:
        with world.transaction(self.held) as tx:
            if hold:
                inbox.hold_undecided(tx)
            ownership.give_up(tx)
        world.forget_wakes(self.id)
        return self

    # Recovery

    def orphan(self) -> Discovered:
        row = self.row
        return Discovered(session_id=self.id, owner=row.owner_id, fence=row.fence)

    def recovered(self, *, by: str | None = None, now: datetime = LATER) -> RecoveryClaim:
        """Found and claimed like every orphan."""
        found = {orphan.session_id: orphan for orphan in discovery.find_orphans(now=now)}
        assert self.id in found, "the session is no orphan"
        outcome = try_to_recover(found[self.id], by=by, now=now)
        assert outcome.claim is not None, outcome
        return outcome.claim

    # Looking

    @property
    def row(self) -> Session:
        return world.row(self.id)

    def step(self) -> SessionMessage:
        return SessionMessage.objects.get(pk=self.message)

    def part(self, part_id: str) -> MessagePart:
        return MessagePart.objects.get(pk=part_id)

    def attempt_row(self) -> ProviderAttempt:
        return ProviderAttempt.objects.get(pk=self.attempt)

    def claims(self) -> list[RecoveryClaim]:
        return list(RecoveryClaim.objects.filter(session_id=self.id).order_by("boundary_seq"))

    def continuations(self) -> list[str]:
        return list(self.row.inputs.filter(origin="recovery").values_list("pk", flat=True))

    def is_at_rest(self) -> bool:
        """Nothing of it is unfinished, and nobody owns it."""
        return self.row.owner_id is None and not ownership.has_unsettled_work(self.id)

    def status(self) -> str:
        return sessions.get_status(self.id, now=LATER).state


def try_to_recover(orphan: Discovered, *, by: str | None = None, now: datetime = LATER) -> Recovered:
    return recover.recover(orphan, worker_id=by or world.worker().pk, now=now)


def sweep(*, by: str = "", now: datetime = LATER) -> list[Recovered]:
    return list(service.recover_all(worker_id=by or world.worker().pk, now=now))


def agent(name: str = "", **columns: Any) -> str:
    made = Agent.objects.create(name=name or f"agent-{next(_NUMBERS)}", **columns)
    return made.pk


def lose_all_wakes() -> None:
    OrmQ.objects.all().delete()
    Session.objects.update(wake_enqueued_at=None)


def set_count(session_id: str, count: int) -> None:
    world.change(session_id, recovery_count=count)


def person_prompts(session_id: str, text: str = "More", **options: Any) -> str:
    return sessions.prompt(session_id=session_id, text=text, now=LATER, **options).prompt.pk


def stop(session_id: str, *, resume: bool = False) -> bool:
    return sessions.interrupt(session_id=session_id, now=LATER, resume=resume)


def take_over(session_id: str, *, by: str) -> Held:
    """Another worker takes a session that is due, as its drain would."""
    with session_transaction(session_id, now=LATER) as tx:
        taken = ownership.take(tx, worker_id=by)
    assert isinstance(taken, Held), taken
    return taken
