"""Recovering one orphan: every sentence of the promise, on rows that a crash left."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from recovery import discovery, recover, service, settle, snapshot, sweep
from recovery.models import RecoveryClaim
from schema.codec import UndecodableEvent
from schema.events import AttemptPrepared, ToolCalled
from sessions_app import history, identity, inbox, log, ownership, sessions
from sessions_app.log import FenceLost, Held, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionEvent, SessionMessage, Worker
from tests.recovery import losses
from tests.recovery.losses import LATER, Lost
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

BUDGET = 3


@pytest.fixture(autouse=True)
def policy(settings: Any) -> Any:
    settings.HOLDFAST_RECOVERY_POLICY = "continue"
    settings.HOLDFAST_RECOVERY_BUDGET = BUDGET
    return settings


def streaming() -> Lost:
    return Lost().streaming().text()


# Counted, claimed, settled, woken


def test_a_lost_stream_is_settled_and_goes_on_with_one_continuation() -> None:
    lost = streaming().dies()
    boundary, fence = lost.row.head_seq, lost.row.fence

    claim = lost.recovered()

    assert (claim.outcome, claim.boundary_seq, claim.lost_fence) == ("continued", boundary, fence)
    assert (claim.lost_owner, claim.death) == (lost.owner, "proved")
    assert claim.found == {"attempts": 1, "tools": 0, "parts": 1}
    assert lost.continuations() == [claim.continuation]
    row = lost.row
    assert (row.owner_id, row.fence, row.recovering_id) == (None, fence + 1, None)
    assert row.recovery_count == 1
    assert row.owed_at is not None
    assert lost.is_at_rest()
    assert lost.attempt_row().state == "unknown"
    assert (lost.step().state, bool(lost.step().notice)) == ("unknown", True)
    assert MessagePart.objects.get(message_id=lost.message).text == "So far"
    assert world.wakes() == [lost.id]


def test_the_log_says_that_it_was_claimed_before_it_says_what_was_settled() -> None:
    lost = streaming().dies()
    before = lost.row.head_seq

    claim = lost.recovered()

    events = list(SessionEvent.objects.filter(session_id=lost.id, seq__gt=before).order_by("seq"))
    assert [event.type for event in events] == [
        "recovery.claimed",
        "text.ended",
        "attempt.unknown",
        "step.failed",
        "attempt.decided",
        "prompt.admitted",
    ]
    assert events[0].data["claim"] == claim.pk
    assert events[0].data["boundary"] == before == claim.boundary_seq
    assert events[0].data["continuation"] == claim.continuation
    assert world.seqs(lost.id) == list(range(1, lost.row.head_seq + 1))


def test_the_dead_owner_can_write_nothing_more() -> None:
    lost = streaming().dies()
    lost.recovered()
    before = world.everything_of(lost.id)

    with pytest.raises(FenceLost):
        lost.text("More")

    assert world.everything_of(lost.id) == before


def test_it_is_counted_durably_before_anything_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, me = streaming().dies(), world.worker().pk
    seen = []

    def look(*_: Any, **__: Any) -> Any:
        seen.append((lost.row.recovery_count, lost.row.recovering_id, RecoveryClaim.objects.count()))
        raise OperationalError

    monkeypatch.setattr(snapshot, "take", look)
    with pytest.raises(OperationalError):
        losses.try_to_recover(lost.orphan(), by=me)

    assert seen == [(1, me, 0)]
    assert lost.row.recovery_count == 1


def test_nobody_else_recovers_what_a_living_worker_is_recovering(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, me, other = streaming().dies(), world.worker().pk, world.worker().pk
    world.change(lost.id, recovering_id=me)
    before = world.everything_of(lost.id)

    assert losses.try_to_recover(lost.orphan(), by=other).outcome == "lost"
    assert world.everything_of(lost.id) == before

    assert losses.try_to_recover(lost.orphan(), by=me).outcome == "claimed"


def test_who_died_while_recovering_is_followed_by_another_and_both_are_counted() -> None:
    lost, died = streaming().dies(), world.worker(dead_at=world.NOW)
    world.change(lost.id, recovering_id=died.pk, recovery_count=1)

    claim = lost.recovered()

    assert lost.row.recovery_count == 2
    assert len(lost.claims()) == 1
    assert lost.continuations() == [claim.continuation]


def test_one_that_the_same_worker_begins_again_after_the_database_was_away_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost, me = streaming().dies(), world.worker().pk
    claim = recover._claim

    def away(*_: Any, **__: Any) -> Any:
        raise OperationalError

    for _ in range(BUDGET + 1):
        monkeypatch.setattr(recover, "_claim", away)
        with pytest.raises(OperationalError):
            losses.try_to_recover(lost.orphan(), by=me)
    monkeypatch.setattr(recover, "_claim", claim)

    assert losses.try_to_recover(lost.orphan(), by=me).outcome == "claimed"
    assert (lost.row.recovery_count, lost.row.parked) == (1, False)


def owner_lives(lost: Lost) -> None:
    Worker.objects.filter(pk=lost.owner).update(dead_at=None, death="")


def owner_is_another(lost: Lost) -> None:
    world.change(lost.id, owner_id=world.worker(dead_at=world.NOW).pk)


def fence_moved(lost: Lost) -> None:
    world.change(lost.id, fence=lost.row.fence + 1)


def released_meanwhile(lost: Lost) -> None:
    world.change(lost.id, owner_id=None)


def parked_meanwhile(lost: Lost) -> None:
    world.change(lost.id, parked=True)


@pytest.mark.parametrize(
    "meanwhile", [owner_lives, owner_is_another, fence_moved, released_meanwhile, parked_meanwhile]
)
def test_nothing_is_written_when_it_is_not_as_discovered_any_more(
    meanwhile: Callable[[Lost], None],
) -> None:
    lost = streaming().dies()
    orphan = lost.orphan()
    meanwhile(lost)
    before, workers = world.everything_of(lost.id), world.rows_of(Worker)
    me = world.worker()

    assert losses.try_to_recover(orphan, by=me.pk).outcome == "lost"

    assert world.everything_of(lost.id) == before
    assert world.rows_of(Worker) == [*workers, *world.rows_of(Worker, pk=me.pk)]
    assert world.wakes() == []


@pytest.mark.parametrize("meanwhile", [owner_is_another, fence_moved, released_meanwhile])
def test_nothing_more_is_written_when_it_changed_between_count_and_claim(
    meanwhile: Callable[[Lost], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = streaming().dies()
    count = recover._count

    def counted(*arguments: Any, **named: Any) -> bool:
        over = count(*arguments, **named)
        meanwhile(lost)
        return over

    monkeypatch.setattr(recover, "_count", counted)
    events = lost.row.head_seq

    assert losses.try_to_recover(lost.orphan()).outcome == "lost"

    assert lost.row.head_seq == events
    assert lost.claims() == []


def test_an_owner_that_renewed_after_its_lock_looked_free_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = streaming()
    orphan = lost.orphan()
    looks_dead = ownership.looks_dead

    def renewed_meanwhile(worker: Worker) -> bool:
        Worker.objects.filter(pk=worker.pk).update(heartbeat_count=99)
        return worker.pk == lost.owner or looks_dead(worker)

    monkeypatch.setattr("sessions_app.ownership.deaths.looks_dead", renewed_meanwhile)

    assert losses.try_to_recover(orphan).outcome == "lost"
    assert lost.claims() == []
    assert lost.row.owner_id == lost.owner


def test_one_loss_has_one_claim_by_its_boundary_and_by_its_fence() -> None:
    lost = streaming().dies()
    claim = lost.recovered()
    same: dict[str, Any] = {
        "session_id": lost.id, "death": "proved", "outcome": "held", "found": {}, "created_at": LATER,
    }  # fmt: skip

    for repeated in (
        {"boundary_seq": claim.boundary_seq, "lost_fence": 99},
        {"boundary_seq": 99, "lost_fence": claim.lost_fence},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            RecoveryClaim.objects.create(id=identity.new_claim_id(), **same, **repeated)


@pytest.mark.parametrize("taken", ["boundary_seq", "lost_fence"])
def test_where_a_claim_is_there_already_nothing_is_written_a_second_time(taken: str) -> None:
    lost = streaming().dies()
    free = {"boundary_seq": 1, "lost_fence": 99} | {
        taken: {"boundary_seq": lost.row.head_seq, "lost_fence": lost.row.fence}[taken]
    }
    RecoveryClaim.objects.create(
        id=identity.new_claim_id(), session_id=lost.id, death="proved", outcome="held", found={},
        created_at=LATER, **free,
    )  # fmt: skip
    events = lost.row.head_seq

    assert losses.try_to_recover(lost.orphan()).outcome == "lost"

    assert lost.row.head_seq == events
    assert lost.continuations() == []


def test_what_the_database_refuses_is_a_failure_and_not_somebody_elses_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = streaming().dies()

    def refused(*_: Any, **__: Any) -> None:
        raise IntegrityError("a row that does not fit")

    monkeypatch.setattr(settle, "settle", refused)

    outcome = losses.try_to_recover(lost.orphan())

    assert (outcome.outcome, outcome.detail) == ("failed", "a row that does not fit")
    assert lost.claims() == []


def test_a_second_recovery_of_the_same_discovery_changes_nothing() -> None:
    lost = streaming().dies()
    orphan = lost.orphan()
    losses.try_to_recover(orphan)
    before = world.everything_of(lost.id)

    assert losses.try_to_recover(orphan).outcome == "lost"

    assert world.everything_of(lost.id) == before


@pytest.mark.parametrize("fails", ["settle.settle", "settle.go_on", "wakes.enqueue"])
def test_a_recovery_that_breaks_off_anywhere_leaves_nothing_but_its_count(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = streaming().dies()
    before = world.everything_of(lost.id)

    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(f"recovery.recover.{fails}", fail)
        with pytest.raises(OperationalError):
            losses.try_to_recover(lost.orphan())

    after = world.everything_of(lost.id)
    world.change(lost.id, recovery_count=0, recovering_id=None)
    assert world.everything_of(lost.id) == before
    assert after["RecoveryClaim"] == []
    assert world.wakes() == []
    assert lost.recovered().outcome == "continued"


# What is not an orphan


def test_the_sweep_finds_orphans_only_and_moves_nothing_else() -> None:
    others = [
        Lost(),
        Lost().streaming(),
        Lost().ended().released(),
    ]
    waiting = Lost().streaming()
    waiting.call(waits=True)
    waiting.completed().released()
    parked = streaming().dies()
    world.change(parked.id, parked=True)
    lost = streaming().dies()
    before = [world.everything_of(lost.id) for lost in (*others, waiting, parked)]

    recovered = losses.sweep()

    assert [each.session_id for each in recovered] == [lost.id]
    assert [world.everything_of(lost.id) for lost in (*others, waiting, parked)] == before


@pytest.mark.parametrize("only", ["attempt", "part", "message"])
@pytest.mark.rows_of_its_own
def test_unsettled_work_that_nobody_owns_is_treated_as_an_orphan(only: str) -> None:
    lost = Lost()
    if only == "attempt":
        lost.dispatched()
    elif only == "part":
        lost.streaming().text().completed()
    else:
        lost.prepared()
        ProviderAttempt.objects.filter(pk=lost.attempt).update(settled_at=world.NOW, state="settled")
    lost.released()

    claim = lost.recovered()

    assert (claim.death, claim.lost_owner) == ("none", "")
    assert lost.is_at_rest()
    assert lost.step().completed_at is not None


def test_an_approved_call_that_was_entered_is_unsettled_work_like_any_other() -> None:
    lost = Lost().streaming()
    call = lost.call(waits=True)
    lost.completed()
    sessions.answer_call(session_id=lost.id, call_id=call, action="approve", by="ann", now=LATER)
    lost.write(ToolCalled(message=lost.message, part=call, input={}, input_digest="d", effect="side_effect"))
    lost.released()

    claim = lost.recovered()

    assert claim.death == "none"
    assert lost.part(call).unknown_at is not None
    assert lost.is_at_rest()


def test_a_stray_of_a_living_worker_is_recovered_by_that_worker_only() -> None:
    lost, other = streaming(), world.worker().pk

    assert service.recover_one(lost.id, other, now=LATER).outcome == "lost"  # type: ignore[union-attr]
    assert lost.claims() == []

    stray = service.recover_one(lost.id, lost.owner, now=LATER)

    assert stray is not None
    assert stray.claim is not None
    assert (stray.claim.death, stray.claim.lost_owner) == ("own", lost.owner)
    assert ownership.is_alive(Worker.objects.get(pk=lost.owner))


def test_a_session_that_cannot_be_recovered_is_named_and_the_others_are_recovered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken, whole, other_whole = streaming().dies(), streaming().dies(), streaming().dies()
    take = snapshot.take

    def damaged(session: Session, **named: Any) -> Any:
        if session.pk == broken.id:
            raise UndecodableEvent("An event of another version.", event_type="x", version=9)
        return take(session, **named)

    monkeypatch.setattr(snapshot, "take", damaged)

    outcomes = {each.session_id: each for each in losses.sweep()}

    assert outcomes[broken.id].outcome == "failed"
    assert "another version" in outcomes[broken.id].detail
    assert {outcomes[each.id].outcome for each in (whole, other_whole)} == {"claimed"}


@pytest.mark.parametrize("damage", [ValueError("x"), KeyError("x"), TypeError("x"), DatabaseError("x")])
def test_a_session_with_damaged_rows_stops_no_other_and_whoever_looks_next_names_it_too(
    damage: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, other = streaming().dies(), streaming().dies()
    settle_all = settle.settle

    def break_off(tx: Any, made: Any) -> None:
        if tx.session.pk == lost.id:
            raise damage
        settle_all(tx, made)

    monkeypatch.setattr(settle, "settle", break_off)

    for _ in range(2):
        outcomes = {each.session_id: each.outcome for each in losses.sweep()}
        assert outcomes[lost.id] == "failed"
    assert len(other.claims()) == 1


def test_a_session_that_cannot_even_be_given_back_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, other = streaming().dies(), streaming().dies()
    owed = world.session()
    world.prompt(owed)
    losses.lose_all_wakes()
    transaction_of = log.session_transaction

    def unreadable(session_id: str, **how: Any) -> Any:
        if session_id in (lost.id, broken):
            raise ValueError("a column that this version cannot read")
        return transaction_of(session_id, **how)

    broken = world.session()
    world.prompt(broken)
    losses.lose_all_wakes()
    monkeypatch.setattr(recover, "session_transaction", unreadable)
    monkeypatch.setattr(service, "session_transaction", unreadable)

    outcomes = {each.session_id: each.outcome for each in losses.sweep()}

    assert (outcomes[lost.id], outcomes[other.id]) == ("failed", "claimed")
    assert owed in world.wakes()


@pytest.mark.rows_of_its_own
def test_usage_that_cannot_be_read_fails_that_session_alone() -> None:
    lost, other = Lost().calling("read").dies(), streaming().dies()
    ProviderAttempt.objects.filter(pk=lost.attempt).update(usage={"input_tokens": "many"})

    outcomes = {each.session_id: each.outcome for each in losses.sweep()}

    assert outcomes == {lost.id: "failed", other.id: "claimed"}


def test_a_database_that_is_away_is_no_fault_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = streaming().dies()

    def away(*_: Any, **__: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(snapshot, "take", away)
    with pytest.raises(OperationalError):
        losses.sweep()

    assert lost.claims() == []


# How it goes on


def test_a_request_that_never_left_is_made_again_without_a_continuation() -> None:
    lost = Lost().prepared().dies()

    claim = lost.recovered()

    assert (claim.outcome, claim.continuation) == ("resumed", "")
    attempt = lost.attempt_row()
    assert (attempt.state, attempt.outcome, attempt.may_be_billed) == ("settled", "not_sent", False)
    assert lost.step().state == "interrupted"
    assert lost.row.owed_at is not None
    assert world.wakes() == [lost.id]


def test_a_promoted_prompt_without_an_answer_is_owed_and_nothing_else_is_said() -> None:
    lost = Lost()
    before = lost.row.owed_at

    claim = lost.dies().recovered()

    assert claim.outcome == "resumed"
    assert lost.row.owed_at == max(before, LATER)  # type: ignore[type-var]
    assert world.event_types(lost.id)[-1] == "recovery.claimed"


@pytest.mark.rows_of_its_own
def test_a_retry_keeps_its_time() -> None:
    lost = Lost().prepared()
    at = world.after(3600)
    ProviderAttempt.objects.filter(pk=lost.attempt).update(
        state="settled", outcome="not_sent", settled_at=world.NOW
    )
    world.change(lost.id, owed_at=at)

    claim = lost.dies().recovered()

    assert claim.outcome == "resumed"
    assert lost.row.owed_at == at
    assert world.wakes() == []
    assert discovery.find_due(now=world.after(3601)) == [lost.id]


def test_settled_calls_without_a_following_step_are_owed_one() -> None:
    lost = Lost().calling("read", None)

    claim = lost.dies().recovered()

    assert claim.outcome == "resumed"
    assert (lost.step().state, lost.step().finish) == ("completed", "tool-calls")
    errors = MessagePart.objects.filter(message_id=lost.message).values_list("state", "error", "unknown_at")
    assert set(errors) == {("error", "Tool execution interrupted", None)}


@pytest.mark.parametrize(
    ("effect", "outcome"), [("idempotent", "continued"), ("side_effect", "held"), ("read", "resumed")]
)
def test_an_entered_call_goes_by_its_effect(effect: Any, outcome: str) -> None:
    lost = Lost().calling(effect).dies()

    assert lost.recovered().outcome == outcome

    call = MessagePart.objects.get(message_id=lost.message)
    assert (call.state, call.error) == ("error", "Tool execution interrupted")
    assert (call.unknown_at is not None) is (effect != "read")


def test_the_agent_may_say_that_it_goes_on_after_effects() -> None:
    name = losses.agent(continues_after_effects=True)
    lost = Lost(agent=name).calling("side_effect").dies()

    claim = lost.recovered()

    assert claim.outcome == "continued"
    text = lost.row.inputs.get(pk=claim.continuation).text
    assert "tool-0" in text
    assert "Do not call them again" in text


def test_an_unknown_side_effect_waits_for_a_person_and_holds_what_was_pending() -> None:
    lost = Lost().calling("side_effect")
    queued = losses.person_prompts(lost.id, delivery="queue")
    losses.lose_all_wakes()

    claim = lost.dies().recovered()

    assert claim.outcome == "held"
    assert lost.status() == "needs_decision"
    assert (lost.row.hold_reason, lost.row.owed_at) == ("undecided", None)
    assert world.wakes() == []
    assert world.input_row(queued).promoted_seq is None
    losses.person_prompts(lost.id, "Never mind")
    assert lost.row.hold_seq is None
    assert len(inbox.promotable(lost.row)) == 2


def test_off_leaves_it_idle_with_the_unknown_shown_and_decidable() -> None:
    lost = Lost(recovery_policy="off").streaming().dies()

    assert lost.recovered().outcome == "closed"

    assert lost.status() == "idle"
    assert (lost.row.owed_at, lost.continuations(), world.wakes()) == (None, [], [])
    attempt = lost.attempt_row()
    assert (attempt.state, attempt.decision) == ("unknown", None)


@pytest.mark.parametrize(
    ("session", "of_agent", "site", "outcome"),
    [
        (None, "", "continue", "continued"),
        (None, "", "ask", "held"),
        (None, "ask", "continue", "held"),
        ("continue", "ask", "off", "continued"),
        ("off", "continue", "continue", "closed"),
    ],
)
def test_the_sessions_policy_counts_before_its_agents_and_that_before_the_sites(
    session: Any, of_agent: str, site: str, outcome: str, settings: Any
) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = site
    name = losses.agent(recovery_policy=of_agent)
    lost = Lost(agent=name, recovery_policy=session).streaming().dies()

    assert lost.recovered().outcome == outcome


def test_a_waiting_steer_of_the_user_takes_the_continuations_place_and_a_run_is_owed_all_the_same() -> None:
    lost = streaming()
    steer = losses.person_prompts(lost.id)
    losses.lose_all_wakes()

    claim = lost.dies().recovered()

    assert (claim.outcome, claim.continuation) == ("continued", "")
    assert lost.continuations() == []
    assert lost.row.owed_at is not None
    assert lost.attempt_row().decision is not None
    inbox.withdraw(session_id=lost.id, message_id=steer, now=LATER)
    assert inbox.is_due(lost.row, now=LATER)


@pytest.mark.parametrize("options", [{"delivery": "queue"}, {"wake": False}])
def test_a_queued_prompt_and_one_that_wants_no_wake_do_not_take_the_continuations_place(
    options: dict[str, Any],
) -> None:
    lost = streaming()
    losses.person_prompts(lost.id, **options)

    assert lost.dies().recovered().continuation


def test_the_continuation_runs_before_what_was_queued() -> None:
    lost = streaming()
    queued = losses.person_prompts(lost.id, delivery="queue")
    claim = lost.dies().recovered()

    held = losses.take_over(lost.id, by=world.worker().pk)
    with world.transaction(held) as tx:
        promoted = inbox.promote_steers(tx)

    assert promoted == [claim.continuation]
    assert world.input_row(queued).promoted_seq is None


def test_calls_that_wait_for_a_person_stay_and_the_answer_still_counts() -> None:
    lost = Lost().streaming()
    waiting, running = lost.call(waits=True), lost.call("other", effect="read")
    lost.completed().dies()

    claim = lost.recovered()

    assert claim.outcome == "closed"
    assert (lost.part(waiting).state, lost.part(waiting).approval) == ("pending", "waiting")
    assert lost.part(running).state == "error"
    assert lost.status() == "waiting"
    assert losses.sweep() == []
    sessions.answer_call(session_id=lost.id, call_id=waiting, action="approve", by="ann", now=LATER)
    assert inbox.is_due(lost.row, now=LATER)
    losses.take_over(lost.id, by=world.worker().pk)


@pytest.mark.rows_of_its_own
def test_an_older_unfinished_step_is_closed_and_never_continued() -> None:
    """P9: a newer turn supersedes it, and nothing is written into it but its end."""
    lost = streaming()
    older = lost.message
    SessionMessage.objects.filter(pk=older).update(seq=2)
    newest = lost.prepared().message
    lost.dies()

    lost.recovered()

    closed = SessionMessage.objects.get(pk=older)
    assert closed.completed_at is not None
    assert "superseded" in closed.error["message"]  # type: ignore[index]
    assert SessionMessage.objects.get(pk=newest).state == "interrupted"


@pytest.mark.rows_of_its_own
def test_an_unknown_attempt_of_no_step_is_abandoned_by_itself() -> None:
    lost = Lost().ended()
    title = identity.new_attempt_id()
    lost.write(
        AttemptPrepared(
            attempt=title,
            purpose="title",
            ordinal=1,
            provider="demo",
            model="scripted",
            request_digest="d" * 64,
        )
    )
    ProviderAttempt.objects.filter(pk=title).update(state="streaming")

    claim = lost.dies().recovered()

    attempt = ProviderAttempt.objects.get(pk=title)
    assert attempt.state == "unknown"
    assert attempt.decision["action"] == "abandon"  # type: ignore[index]
    assert (claim.outcome, claim.continuation) == ("closed", "")
    assert lost.status() == "idle"


# Stop


def test_a_stop_that_the_owner_did_not_live_to_serve_pauses_and_nothing_continues() -> None:
    lost = streaming()
    pending = losses.person_prompts(lost.id)
    assert losses.stop(lost.id)
    losses.lose_all_wakes()

    claim = lost.dies().recovered()

    assert (claim.outcome, claim.continuation) == ("held", "")
    assert (lost.row.hold_reason, lost.row.owed_at) == ("paused", None)
    assert (lost.row.interrupt_fence, world.wakes()) == (None, [])
    assert world.input_row(pending).promoted_seq is None
    assert "execution.interrupted" in world.event_types(lost.id)
    assert lost.is_at_rest()
    assert discovery.find_due(now=world.after(10**6)) == []


def test_a_prompt_sent_after_the_stop_goes_through() -> None:
    lost = streaming()
    losses.stop(lost.id)
    newer = losses.person_prompts(lost.id)
    losses.lose_all_wakes()

    lost.dies().recovered()

    assert [row.pk for row in inbox.promotable(lost.row)] == [newer]
    assert world.wakes() == [lost.id]


def test_a_stop_that_was_to_let_steers_go_on_still_does() -> None:
    lost = streaming()
    losses.person_prompts(lost.id)
    losses.stop(lost.id, resume=True)
    losses.lose_all_wakes()

    lost.dies().recovered()

    assert lost.row.hold_seq is None
    assert world.wakes() == [lost.id]
    assert lost.continuations() == []


def test_a_stop_of_an_earlier_owner_stops_nothing() -> None:
    lost = streaming()
    world.change(lost.id, interrupt_fence=lost.row.fence - 1, interrupt_seq=1)

    assert lost.dies().recovered().outcome == "continued"


def test_a_stop_ends_calls_that_waited_in_the_step_and_a_late_answer_is_refused() -> None:
    lost = Lost().streaming()
    waiting = lost.call(waits=True)
    lost.call("other", effect="read")
    lost.completed()
    losses.stop(lost.id)

    lost.dies().recovered()

    assert lost.part(waiting).state == "error"
    assert lost.is_at_rest()
    with pytest.raises(Exception, match=r".") as refused:
        sessions.answer_call(session_id=lost.id, call_id=waiting, action="approve", by="ann", now=LATER)
    assert type(refused.value).__name__ == "Superseded"


# Budget and parking


def test_over_budget_it_is_settled_once_and_parked() -> None:
    lost = streaming()
    queued = losses.person_prompts(lost.id, delivery="queue")
    losses.lose_all_wakes()
    losses.set_count(lost.id, BUDGET)

    claim = lost.dies().recovered()

    assert (claim.outcome, claim.continuation) == ("parked", "")
    assert (lost.row.parked, lost.row.owed_at, lost.row.owner_id) == (True, None, None)
    assert lost.is_at_rest()
    assert lost.status() == "needs_decision"
    assert world.wakes() == []
    assert losses.sweep() == []
    assert discovery.find_due(now=world.after(10**6)) == []
    assert world.input_row(queued).promoted_seq is None


def test_the_last_recovery_within_the_budget_still_goes_on() -> None:
    lost = streaming()
    losses.set_count(lost.id, BUDGET - 1)

    assert lost.dies().recovered().outcome == "continued"


class Killed(BaseException):
    """As if the process were gone from here on."""


def die(*_: Any, **__: Any) -> None:
    raise Killed


def test_a_session_that_kills_whoever_recovers_it_is_parked_and_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost, other = streaming().dies(), streaming().dies()
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "take", die)
        for _ in range(BUDGET + 1):
            me = world.worker()
            with pytest.raises(Killed):
                losses.try_to_recover(lost.orphan(), by=me.pk)
            Worker.objects.filter(pk=me.pk).update(dead_at=world.NOW)

    assert (lost.row.parked, lost.row.recovery_count) == (True, BUDGET + 1)
    before = world.everything_of(lost.id)

    assert [each.session_id for each in losses.sweep()] == [other.id]
    assert world.everything_of(lost.id) == before


def parked_unsettled(**arguments: Any) -> Lost:
    """Parked by a recovery that died before it could settle."""
    lost = Lost(**arguments).streaming().text().dies()
    world.change(
        lost.id, parked=True, recovery_count=BUDGET + 1, recovering_id=world.worker(dead_at=world.NOW).pk
    )
    return lost


@pytest.mark.parametrize("policy", ["continue", "ask", "off"])
@pytest.mark.parametrize("act", ["prompt", "resume"])
def test_what_is_parked_and_unsettled_is_settled_and_runs_when_a_person_wants_it(
    act: str, policy: Any
) -> None:
    lost = parked_unsettled(recovery_policy=policy)

    if act == "prompt":
        wanted = losses.person_prompts(lost.id)
    else:
        assert sessions.resume(session_id=lost.id, now=LATER)

    assert not lost.row.parked
    assert world.wakes() == [lost.id]
    claim = lost.recovered()
    assert claim.outcome == ("continued" if policy == "continue" else "resumed")
    assert lost.is_at_rest()
    assert lost.row.recovery_count == 1
    assert inbox.is_due(lost.row, now=LATER)
    if act == "prompt":
        assert wanted in [row.pk for row in inbox.promotable(lost.row)]


@pytest.mark.parametrize("policy", ["continue", "ask", "off"])
def test_a_resume_of_what_is_lost_and_not_recovered_yet_is_kept(policy: Any) -> None:
    lost = Lost(recovery_policy=policy).streaming().dies()

    assert sessions.resume(session_id=lost.id, now=LATER)

    assert world.wakes() == [lost.id]
    lost.recovered()
    assert inbox.is_due(lost.row, now=LATER)


@pytest.mark.parametrize("act", ["prompt", "resume"])
def test_what_is_parked_and_settled_runs_again_when_a_person_wants_it(act: str) -> None:
    lost = streaming()
    losses.set_count(lost.id, BUDGET)
    lost.dies().recovered()

    if act == "prompt":
        losses.person_prompts(lost.id)
    else:
        assert sessions.resume(session_id=lost.id, now=LATER)

    assert (lost.row.parked, lost.row.recovery_count) == (False, 0)
    assert inbox.is_due(lost.row, now=LATER)
    assert world.wakes() == [lost.id]


def test_a_resume_of_what_was_parked_between_two_steps_runs_it() -> None:
    lost = Lost().calling("read")
    losses.set_count(lost.id, BUDGET)
    lost.dies().recovered()
    assert lost.step().state == "completed"

    assert sessions.resume(session_id=lost.id, now=LATER)

    assert not lost.row.parked


def test_those_beside_a_session_whose_tool_was_running_spend_no_budget() -> None:
    beside = streaming()
    suspect = Lost(owner=beside.owner).calling("read")
    elsewhere = streaming().dies()
    beside.dies()

    outcomes = {each.session_id: each.outcome for each in losses.sweep()}

    assert set(outcomes.values()) == {"claimed"}
    assert [each.row.recovery_count for each in (beside, suspect, elsewhere)] == [0, 1, 1]


def test_a_session_that_kills_its_worker_without_a_tool_is_parked_however_often_a_tool_ran_beside_it() -> (
    None
):
    killer = Lost(recovery_policy="continue").streaming()
    claims = 0
    while not killer.row.parked:
        owner = killer.row.owner_id or ""
        Lost(owner=owner).calling("read")
        killer.dies().recovered()
        claims += 1
        assert claims < 100, "it is never parked"
        if not killer.row.parked:
            killer.owner = world.worker().pk
            killer.held = world.take(killer.id, killer.owner, now=LATER)
            with world.transaction(killer.held) as tx:
                inbox.promote(tx)
            killer.streaming()

    assert claims <= 4 * BUDGET + 1


def test_one_that_killed_its_recoverer_counts_whatever_was_lost_beside_it() -> None:
    beside = streaming()
    Lost(owner=beside.owner).calling("read")
    beside.dies()
    world.change(beside.id, recovering_id=world.worker(dead_at=world.NOW).pk)

    losses.sweep()

    assert beside.row.recovery_count == 1


# What resets the budget


def held_by_a_new_owner(lost: Lost) -> Held:
    return losses.take_over(lost.id, by=world.worker().pk)


def release(held: Held) -> bool:
    with session_transaction(held.session_id, now=LATER, held=held) as tx:
        return ownership.release(tx)


def idle_again(lost: Lost) -> Held:
    """Its next owner has done what was owed and has nothing left to do."""
    held = held_by_a_new_owner(lost)
    with session_transaction(lost.id, now=LATER, held=held) as tx:
        inbox.promote(tx)
        inbox.clear(tx)
    return held


def test_a_release_that_left_nothing_to_do_resets_the_budget() -> None:
    lost = streaming().dies()
    lost.recovered()
    held = idle_again(lost)
    assert lost.row.recovery_count == 1

    assert release(held)

    assert lost.row.recovery_count == 0


def test_a_step_alone_a_wait_for_a_person_and_a_shutdown_reset_nothing() -> None:
    lost = streaming().dies()
    lost.recovered()
    held = held_by_a_new_owner(lost)
    assert not release(held)
    assert lost.row.recovery_count == 1

    with session_transaction(lost.id, now=LATER, held=held) as tx:
        ownership.give_up(tx)

    assert lost.row.recovery_count == 1


def undecided(lost: Lost) -> None:
    ProviderAttempt.objects.filter(session_id=lost.id, unknown_at__isnull=False).update(
        decision=None, decided_at=None
    )


@pytest.mark.parametrize(
    "left",
    [
        undecided,
        lambda lost: world.change(lost.id, hold_seq=1, hold_reason="undecided"),
        lambda lost: world.change(lost.id, parked=True),
    ],
)
@pytest.mark.rows_of_its_own
def test_what_waits_for_a_person_is_no_end_that_resets_the_budget(left: Callable[[Lost], None]) -> None:
    lost = streaming().dies()
    lost.recovered()
    held = idle_again(lost)
    left(lost)

    assert release(held)

    assert lost.row.recovery_count == 1


def test_the_promotion_of_a_users_prompt_resets_the_budget_and_that_of_a_continuation_does_not() -> None:
    lost = streaming().dies()
    lost.recovered()
    held = held_by_a_new_owner(lost)
    with session_transaction(lost.id, now=LATER, held=held) as tx:
        inbox.promote(tx)
    assert lost.row.recovery_count == 1
    losses.person_prompts(lost.id)

    with session_transaction(lost.id, now=LATER, held=held) as tx:
        inbox.promote(tx)

    assert lost.row.recovery_count == 0


# What the model is told


def told(lost: Lost) -> str:
    return "\n".join(
        getattr(turn, "text", "") for turn in history.lower(history.select(lost.id), model=losses.MODEL)
    )


def take_and_promote(lost: Lost) -> None:
    held = held_by_a_new_owner(lost)
    with session_transaction(lost.id, now=LATER, held=held) as tx:
        inbox.promote(tx)


@pytest.mark.parametrize("make", [streaming, lambda: Lost().dispatched()])
def test_the_model_is_told_of_the_unknown_also_when_the_step_has_no_parts(make: Callable[[], Lost]) -> None:
    lost = make().dies()
    lost.recovered()
    take_and_promote(lost)

    text = told(lost)

    assert lost.step().notice in text
    assert "[Recovery]" in text
    assert history.lower(history.select(lost.id), model=losses.MODEL)[-1].role == "user"


def test_the_model_is_told_whoever_continues() -> None:
    lost = Lost(recovery_policy="ask").streaming().text().dies()
    lost.recovered()
    losses.person_prompts(lost.id, "Go on, please")
    take_and_promote(lost)

    assert lost.step().notice in told(lost)


def test_a_wake_that_meets_an_orphan_recovers_it() -> None:
    lost = streaming().dies()

    sweep.orphan_found(lost.id, world.worker().pk)

    assert len(lost.claims()) == 1


def test_a_session_deleted_after_it_was_found_is_passed_over() -> None:
    gone, there = streaming().dies(), streaming().dies()
    found = discovery.find_orphans(now=LATER)
    sessions.delete(session_id=gone.id, now=LATER)

    outcomes = {each.session_id: losses.try_to_recover(each).outcome for each in found}

    assert outcomes == {gone.id: "lost", there.id: "claimed"}


def test_a_claim_goes_with_its_session() -> None:
    lost = streaming().dies()
    lost.recovered()

    sessions.delete(session_id=lost.id, now=LATER)

    assert not RecoveryClaim.objects.exists()


def test_recovering_costs_the_same_number_of_statements_however_long_the_log_is() -> None:
    short, long = streaming().dies(), Lost()
    for _ in range(20):
        long.ended()
    long.streaming().text().dies()
    costs = []
    for lost in (short, long):
        orphan, me = lost.orphan(), world.worker().pk
        with CaptureQueriesContext(connection) as captured:
            recover.recover(orphan, worker_id=me, now=LATER)
        costs.append(len(captured.captured_queries))

    assert costs[0] == costs[1]


@pytest.mark.parametrize("chosen", ["ask", "off"])
def test_an_answered_call_is_owed_also_where_policy_leaves_the_call_beside_it_to_people(
    chosen: str, policy: Any
) -> None:
    policy.HOLDFAST_RECOVERY_POLICY = chosen
    lost = Lost().streaming()
    cut = lost.call("slow", effect="side_effect")
    granted = lost.call("mail", waits=True)
    lost.completed()
    sessions.answer_call(session_id=lost.id, call_id=granted, action="approve", by="ann", now=LATER)
    lost.dies()

    lost.recovered()

    assert lost.part(cut).unknown_at is not None
    assert (lost.part(granted).state, lost.part(granted).approval) == ("pending", "approved")
    assert inbox.is_due(lost.row, now=LATER)
