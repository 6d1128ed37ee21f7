"""Any sequence of commands, crashes and clock steps keeps the promises.

The verbs are the product's own: what a drain commits is committed by the stages and the recorder that a
drain uses, only the loop between them is the machine's. A crash leaves a drain where it stands.
"""

import itertools
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from recovery import decisions, discovery, service
from recovery.models import RecoveryClaim
from schema.attempts import AttemptError
from schema.problems import AlreadyDecided, AlreadyPromoted, NotUnknown, NotWaiting, Superseded, Withdrawn
from schema.turns import AssistantTurn, CallBlock, ResultTurn, Turn
from sessions_app import agents, history, inbox, ownership, sessions
from sessions_app.execution import retries, stages
from sessions_app.execution.recorder import Recorder
from sessions_app.execution.settling import Entering, Next, Result, Settled
from sessions_app.log import FenceLost, replay
from sessions_app.models import (
    Agent,
    MessagePart,
    ProviderAttempt,
    SessionEvent,
    SessionInput,
    SessionMessage,
    Worker,
)
from sessions_app.providers import port
from sessions_app.tools.overflow import Bounded
from sessions_app.tools.port import Toolset
from tests.recovery import tools as test_tools
from tests.support import world

BUDGET: Final = 3
TOOLSET: Final = Toolset(
    tools={tool.name: tool for tool in (test_tools.look, test_tools.set_up, test_tools.pay)}
)
MODEL: Final = "demo:scripted"
_CALL_IDS: Final = itertools.count(1)

small: Final = strategies.integers(0, 5)


@dataclass(eq=False)
class Drain:
    """Where one drain stands: what it holds, and the step that it writes."""

    held: Any
    recorder: Recorder | None = None
    is_dispatched: bool = False
    entered: list[str] = field(default_factory=list)
    retry: retries.Retry | None = None


class Conversation(RuleBasedStateMachine):
    policy: ClassVar[Any] = "continue"
    user_id: ClassVar[int] = 0
    agent: ClassVar[str] = agents.DEFAULT

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.id = world.session(
            user_id=self.user_id, model=MODEL, agent=self.agent, recovery_policy=self.policy
        )
        self.worker = world.worker()
        self.drain: Drain | None = None
        self.ghosts: list[Drain] = []
        self.accepted: set[str] = set()
        self.was_stopped = False
        self.says(0)

    @property
    def now(self) -> datetime:
        return world.after(self.seconds)

    # People

    @rule(choice=small)
    def says(self, choice: int) -> None:
        admission = sessions.prompt(
            session_id=self.id,
            text=f"Prompt {len(self.accepted)}",
            delivery="queue" if choice % 3 == 1 else "steer",
            wake=choice != 5,
            now=self.now,
        )
        self.accepted.add(admission.prompt.pk)

    @rule(choice=small)
    def withdraws(self, choice: int) -> None:
        pending = list(world.pending(self.id).filter(origin="user"))
        if pending:
            try:
                inbox.withdraw(session_id=self.id, message_id=pending[choice % len(pending)].pk, now=self.now)
            except (AlreadyPromoted, Withdrawn):
                pass

    @rule(resume=strategies.booleans())
    def stops(self, resume: bool) -> None:
        self.was_stopped = True
        sessions.interrupt(session_id=self.id, now=self.now, resume=resume)

    @rule()
    def resumes(self) -> None:
        sessions.resume(session_id=self.id, now=self.now)

    @rule(approve=strategies.booleans())
    def answers(self, approve: bool) -> None:
        for call in MessagePart.objects.filter(session_id=self.id, approval="waiting")[:1]:
            try:
                sessions.answer_call(
                    session_id=self.id,
                    call_id=call.pk,
                    action="approve" if approve else "deny",
                    by="ann",
                    now=self.now,
                )
            except (Superseded, NotWaiting, AlreadyDecided):
                pass

    @rule(retry=strategies.booleans())
    def decides(self, retry: bool) -> None:
        try:
            for attempt in ProviderAttempt.objects.filter(session_id=self.id, state="unknown")[:2]:
                decisions.decide_attempt(
                    session_id=self.id,
                    attempt_id=attempt.pk,
                    action="retry" if retry else "abandon",
                    by="ann",
                    now=self.now,
                )
            for call in MessagePart.objects.filter(session_id=self.id, unknown_at__isnull=False)[:2]:
                decisions.decide_call(
                    session_id=self.id,
                    call_id=call.pk,
                    action="mark_done" if retry else "mark_not_done",
                    by="ann",
                    now=self.now,
                )
        except (AlreadyDecided, Superseded, NotUnknown):
            pass

    # The drain

    @rule()
    def wakes(self) -> None:
        if self.drain is not None:
            return
        begun = stages.begin(session_id=self.id, worker_id=self.worker.pk, now=self.now)
        if isinstance(begun, ownership.Refusal):
            if ownership.is_orphan(self.id, now=self.now):
                service.recover_one(self.id, self.worker.pk, now=self.now)
            return
        self.drain = Drain(begun.held)
        if begun.unfinished is not None:
            frame = stages.frame_of(message_id=begun.unfinished, toolset=TOOLSET)
            self.drain.recorder = Recorder(begun.held, frame)
            self._follow(self.drain.recorder.settle((), now=self.now, shutting_down=False))

    @rule(choices=strategies.lists(small, min_size=1, max_size=6))
    def is_busy(self, choices: list[int]) -> None:
        """A worker drains for a while."""
        self.wakes()
        for choice in choices:
            self.works(choice)

    @rule(choice=small)
    def works(self, choice: int) -> None:
        """The drain takes its next step, whatever that is."""
        drain = self.drain
        if drain is None:
            return
        if drain.recorder is None:
            self._prepare(drain)
        elif drain.entered:
            self._settle(drain, drain.recorder, choice)
        elif not drain.is_dispatched:
            drain.recorder.dispatch(now=self.now)
            drain.is_dispatched = True
        else:
            self._end(drain, drain.recorder, choice)

    def _prepare(self, drain: Drain) -> None:
        prepared = stages.prepare(held=drain.held, toolset=TOOLSET, now=self.now, retry=drain.retry)
        drain.retry = None
        if isinstance(prepared, bool):
            self._goes_on(prepared)
            return
        assert isinstance(prepared, stages.Prepared)
        drain.recorder = Recorder(drain.held, prepared.frame, sending=prepared.sending)
        drain.is_dispatched = False

    def _end(self, drain: Drain, recorder: Recorder, choice: int) -> None:
        """Some text first; then it ends well, with calls, or not."""
        if not recorder.parts and choice != 4:
            recorder.open_part(kind="text", now=self.now).add("So far")
            return
        if choice in (1, 2, 3):
            for name in ("look", "set_up", "pay")[: choice if choice != 1 else 3]:
                part = recorder.open_part(
                    kind="tool", now=self.now, call_id=f"call-{next(_CALL_IDS)}", name=name
                )
                part.add("{}")
        if choice in (4, 5):
            known = "failed" if choice == 5 else "partial"
            error = AttemptError(error_class=known, reason="cut", message="Cut.")  # type: ignore[arg-type]
            following = recorder.fail(error, usage=None, now=self.now, shutting_down=False)
            if isinstance(following, retries.Retry):
                drain.retry, drain.recorder = following, None
            else:
                self._goes_on(following)
            return
        finish = "tool_calls" if choice in (1, 2, 3) else "stop"
        self._follow(recorder.complete(port.Finished(finish), now=self.now, shutting_down=False))

    def _settle(self, drain: Drain, recorder: Recorder, choice: int) -> None:
        part = drain.entered.pop()
        result = Result(part_id=part, output=Bounded(text="done"))
        if choice == 5:
            result = Result(part_id=part, error="Tool execution timed out", is_unknown=True)
        self._follow(recorder.settle([result], now=self.now, shutting_down=False))

    def _follow(self, following: Next) -> None:
        assert self.drain is not None
        if isinstance(following, Entering):
            self.drain.entered += [call.part_id for call in following.calls]
        else:
            assert isinstance(following, Settled)
            self._goes_on(following.goes_on)

    def _goes_on(self, on: bool) -> None:
        assert self.drain is not None
        self.drain = Drain(self.drain.held) if on else None

    @rule(shutdown=strategies.booleans())
    def is_interrupted(self, shutdown: bool) -> None:
        """A Stop reaches its drain, or the process is asked to end."""
        drain = self.drain
        if drain is None or drain.recorder is None:
            return
        if not shutdown and not stages.to_cancel(held=[drain.held]):
            return
        on = drain.recorder.interrupt(reason="shutdown" if shutdown else "user", now=self.now)
        self._goes_on(on)

    # What happens to processes

    @rule()
    def crashes(self) -> None:
        if self.drain is not None:
            self.ghosts.append(self.drain)
        self.drain = None
        Worker.objects.filter(pk=self.worker.pk).update(dead_at=self.now, death="assumed")
        self.worker = world.worker()

    @rule()
    def is_killed_and_recovered(self) -> None:
        self.crashes()
        self.is_swept()
        self.comes_back()

    @rule()
    def is_swept(self) -> None:
        list(service.recover_all(worker_id=self.worker.pk, now=self.now))
        assert discovery.find_orphans(now=self.now) == []

    @rule()
    def comes_back(self) -> None:
        """A worker that was taken for dead goes on: once somebody took over, it writes nothing."""
        row = world.row(self.id)
        for ghost in self.ghosts:
            if (row.owner_id, row.fence) == (ghost.held.worker_id, ghost.held.fence):
                continue
            before = row.head_seq
            with pytest.raises(FenceLost), world.transaction(ghost.held, now=self.now):
                pass
            if ghost.recorder is not None:
                with pytest.raises(FenceLost):
                    ghost.recorder.dispatch(now=self.now)
            assert world.row(self.id).head_seq == before

    def _write(self, ghost: Drain) -> None:
        """What it had at hand when it stopped."""
        if ghost.recorder is None:
            stages.prepare(held=ghost.held, toolset=TOOLSET, now=self.now)
        elif ghost.entered:
            result = Result(part_id=ghost.entered[0], output=Bounded(text="late"))
            ghost.recorder.settle([result], now=self.now, shutting_down=False)
        elif not ghost.is_dispatched:
            ghost.recorder.dispatch(now=self.now)
        else:
            ghost.recorder.open_part(kind="text", now=self.now)

    @rule(seconds=strategies.sampled_from([1.0, 30.0, 3600.0, -30.0, -3600.0]))
    def clock_is_stepped(self, seconds: float) -> None:
        self.seconds += seconds

    # What holds at every moment

    @invariant()
    def every_prompt_is_in_one_place(self) -> None:
        rows = SessionInput.objects.filter(session_id=self.id, origin="user")
        assert set(rows.values_list("pk", flat=True)) == self.accepted
        said = SessionMessage.objects.filter(session_id=self.id, type="user").values_list("pk", flat=True)
        assert set(rows.filter(promoted_seq__isnull=False).values_list("pk", flat=True)) == set(said)

    @invariant()
    def nothing_was_sent_or_entered_twice(self) -> None:
        for kind, key in (("attempt.dispatched", "attempt"), ("tool.called", "part")):
            data = SessionEvent.objects.filter(session_id=self.id, type=kind).values_list("data", flat=True)
            ids = [each[key] for each in data]
            assert len(ids) == len(set(ids))

    @invariant()
    def each_loss_was_claimed_once(self) -> None:
        claims = RecoveryClaim.objects.filter(session_id=self.id)
        fences = list(claims.values_list("lost_fence", flat=True))
        assert len(fences) == len(set(fences))
        continuations = SessionInput.objects.filter(session_id=self.id, origin="recovery").count()
        unknown = SessionEvent.objects.filter(session_id=self.id, type="attempt.unknown").count()
        cut = SessionEvent.objects.filter(session_id=self.id, type="execution.interrupted").count()
        assert continuations <= claims.count() + unknown + cut

    @invariant()
    def nothing_runs_without_an_owner(self) -> None:
        row = world.row(self.id)
        if row.owner_id is None:
            assert not ownership.has_unsettled_work(self.id)
            assert self.drain is None
        assert row.recovery_count <= BUDGET + 1

    @invariant()
    def the_history_is_valid(self) -> None:
        if ownership.has_unsettled_work(self.id):
            return
        turns = history.lower(history.select(self.id), model=MODEL)
        assert not isinstance(turns[-1], AssistantTurn)
        if not inbox.waits_for_a_person(self.id):
            assert_paired(turns)

    @invariant()
    def the_log_is_whole(self) -> None:
        row = world.row(self.id)
        assert world.seqs(self.id) == list(range(1, row.head_seq + 1))

    def teardown(self) -> None:
        """Whatever it was: after a last crash it comes to rest, and what can be answered is."""
        self.crashes()
        self.seconds = max(self.seconds, 0.0) + 10**5
        for _ in range(200):
            self.is_swept()
            self.wakes()
            if self.drain is None and not inbox.is_due(world.row(self.id), now=self.now):
                break
            for _ in range(100):
                if self.drain is not None:
                    self.works(0)
            assert self.drain is None, "it drains for ever"
        row = world.row(self.id)
        assert row.owner_id is None or row.parked
        if not row.parked:
            assert not inbox.is_due(row, now=self.now)
            assert not ownership.has_unsettled_work(self.id)
            self._assert_answered()
        assert replay.rebuild(self.id, check=True) == []
        world.forget_queue()
        RecoveryClaim.objects.all().delete()
        sessions.delete(session_id=self.id, now=self.now)

    def _assert_answered(self) -> None:
        """Nobody stopped it, nobody is asked: then the last word is not the user's."""
        if self.was_stopped or ownership.has_undecided(self.id) or inbox.waits_for_a_person(self.id):
            return
        spoken = SessionMessage.objects.filter(
            session_id=self.id, type__in=("user", "synthetic", "assistant")
        )
        newest = spoken.order_by("-seq").first()
        assert newest is None or newest.type == "assistant"


def assert_paired(turns: tuple[Turn, ...]) -> None:
    """Each call is followed at once by one result."""
    open_calls: list[str] = []
    for turn in turns:
        if isinstance(turn, ResultTurn):
            assert turn.call_id in open_calls
            open_calls.remove(turn.call_id)
            continue
        assert open_calls == []
        if isinstance(turn, AssistantTurn):
            open_calls = [
                block.call_id for block in turn.blocks if isinstance(block, CallBlock) and not block.hosted
            ]
    assert open_calls == []


@pytest.mark.django_db
@pytest.mark.both_databases
@pytest.mark.parametrize("policy", ["continue", "ask", "off"])
def test_any_sequence_of_commands_crashes_and_clock_steps_keeps_the_promises(
    policy: Any, settings: Any
) -> None:
    settings.HOLDFAST_RECOVERY_BUDGET = BUDGET
    agent = Agent.objects.create(name="careful", tool_modes={"pay": "ask"}, continues_after_effects=True)

    class Here(Conversation):
        pass

    Here.policy, Here.user_id, Here.agent = policy, world.user(), agent.pk
    run_state_machine_as_test(Here, settings=EFFORT)


EFFORT: Final = settings(
    derandomize=True,  # the same run everywhere; longer and random ones are for a developer
    max_examples=12,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
