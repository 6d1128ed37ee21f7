"""Recovery against everybody else at the same instant."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Count

from recovery import service
from recovery.models import RecoveryClaim
from sessions_app import identity, inbox, ownership, sessions
from sessions_app.execution import stages
from sessions_app.log import replay
from sessions_app.models import ProviderAttempt, Session, SessionInput
from tests.recovery import crowds, losses
from tests.recovery.losses import LATER, Lost
from tests.support import children, racing, world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

PROCESSES = 8
ORPHANS = 200


@pytest.fixture(autouse=True)
def policy(settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "continue"


@pytest.mark.rows_of_its_own
def test_many_processes_that_recover_the_same_orphans_at_once_claim_each_once(tmp_path: Path) -> None:
    owner = crowds.killed_worker(tmp_path)
    ids = crowds.lost(ORPHANS, user_id=world.user(), owner=owner.pk)

    told = in_processes(PROCESSES)

    assert set(told) <= {"claimed", "lost"}, told
    assert told["claimed"] == ORPHANS
    assert sorted(RecoveryClaim.objects.values_list("session_id", flat=True)) == ids
    continuations = SessionInput.objects.filter(origin="recovery")
    assert sorted(continuations.values_list("session_id", flat=True)) == ids
    at_rest = Session.objects.filter(owner=None, recovering=None, fence=2, recovery_count=1)
    assert at_rest.count() == ORPHANS
    assert sorted(set(world.wakes())) == ids
    assert not ProviderAttempt.objects.exclude(state="unknown").exists()
    gaps = [each for each in ids if world.seqs(each) != list(range(1, world.row(each).head_seq + 1))]
    assert gaps == []


def in_processes(count: int) -> Counter[str]:
    """Let that many processes recover at once; what they told, added up."""
    racing_ = [children.start("tests.recovery.racers", "recover_all") for _ in range(count)]
    try:
        for child in racing_:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in racing_:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        told: Counter[str] = Counter()
        for child in racing_:
            output, _ = child.communicate(timeout=children.PATIENCE_SECONDS)
            assert child.returncode == 0
            told.update(json.loads(output))
        return told
    finally:
        for child in racing_:
            child.kill()
            child.communicate()


# Two at the same instant


def recovering(lost: Lost) -> Callable[[], Any]:
    return partial(losses.try_to_recover, lost.orphan(), by=world.worker().pk)


def against(rounds: int, make: Callable[[], Lost], other: Callable[[Lost], Callable[[], Any]]) -> Any:
    """Rounds of a recovery and something else at once: the session and what the other did."""
    with racing.Racers(2) as racers:
        for _ in racing.rounds(rounds, within=6):
            lost = make()
            losses.lose_all_wakes()
            recovery, did = racers.round(recovering(lost), other(lost))
            assert not isinstance(recovery, Exception), recovery
            yield lost, recovery, did


def lost_stream() -> Lost:
    return Lost().streaming().text().dies()


def assert_holds(lost: Lost) -> None:
    """What holds in whatever order they came."""
    assert lost.is_at_rest()
    assert len(lost.claims()) == 1
    assert len(lost.continuations()) <= 1
    assert world.seqs(lost.id) == list(range(1, lost.row.head_seq + 1))
    assert replay.rebuild(lost.id, check=True) == []


def test_two_recoveries_at_once_leave_one_claim() -> None:
    for lost, first, second in against(20, lost_stream, recovering):
        assert sorted([first.outcome, second.outcome]) == ["claimed", "lost"]
        assert_holds(lost)


def test_a_wake_that_comes_while_it_is_recovered_starts_no_drain_before_it_is_settled() -> None:
    def wake(lost: Lost) -> Callable[[], Any]:
        worker_id = world.worker().pk
        return partial(stages.begin, session_id=lost.id, worker_id=worker_id, now=LATER)

    for lost, recovery, begun in against(20, lost_stream, wake):
        assert recovery.outcome == "claimed"
        if isinstance(begun, stages.Begun):
            assert lost.row.owner_id == begun.held.worker_id
            assert begun.held.fence == recovery.claim.lost_fence + 2
            assert not ownership.has_unsettled_work(lost.id)
        else:
            assert begun is ownership.Refusal.OWNED
            assert_holds(lost)
            assert world.wakes() == [lost.id]


def test_a_users_prompt_at_once_is_kept_and_at_most_one_continuation_beside_it() -> None:
    def prompt(lost: Lost) -> Callable[[], Any]:
        return partial(losses.person_prompts, lost.id, "At once")

    for lost, recovery, message in against(20, lost_stream, prompt):
        assert recovery.outcome == "claimed"
        assert_holds(lost)
        assert message in world.pending(lost.id).values_list("pk", flat=True)
        assert lost.row.hold_seq is None
        assert set(world.wakes()) == {lost.id}


def test_a_users_prompt_at_once_is_answered_even_where_policy_asks() -> None:
    """Before the claim it waits behind the unknown, after it it goes past; it is never lost."""

    def prompt(lost: Lost) -> Callable[[], Any]:
        return partial(losses.person_prompts, lost.id, "At once")

    def asking() -> Lost:
        return Lost(recovery_policy="ask").streaming().dies()

    for lost, _, message in against(20, asking, prompt):
        assert_holds(lost)
        row = world.input_row(message)
        assert row.promoted_seq is None
        is_held = row.admitted_seq <= (lost.row.hold_seq or 0)
        assert is_held is (row.admitted_seq < lost.claims()[0].boundary_seq + 1)
        assert (world.wakes() == [lost.id]) or is_held


def test_a_stop_at_once_either_stops_what_was_lost_or_what_would_go_on() -> None:
    def stop(lost: Lost) -> Callable[[], Any]:
        return partial(losses.stop, lost.id)

    for lost, recovery, stopped in against(20, lost_stream, stop):
        assert stopped is True
        assert recovery.outcome == "claimed"
        assert_holds(lost)
        assert not inbox.is_due(lost.row, now=LATER)
        assert lost.row.interrupt_fence is None


def test_a_deletion_at_once_leaves_nothing_behind() -> None:
    def delete(lost: Lost) -> Callable[[], Any]:
        return partial(sessions.delete, session_id=lost.id, now=LATER)

    for lost, recovery, deleted in against(20, lost_stream, delete):
        assert deleted is None, deleted
        assert recovery.outcome in ("claimed", "lost")
        assert not Session.objects.filter(pk=lost.id).exists()
        assert not RecoveryClaim.objects.filter(session_id=lost.id).exists()


def test_a_resume_at_once_loses_nothing() -> None:
    def resume(lost: Lost) -> Callable[[], Any]:
        return partial(sessions.resume, session_id=lost.id, now=LATER)

    for lost, recovery, resumed in against(15, lost_stream, resume):
        assert resumed is True
        assert recovery.outcome == "claimed"
        assert_holds(lost)
        assert inbox.is_due(lost.row, now=LATER)


def test_two_sweeps_a_prompt_and_its_repeat_at_once() -> None:
    with racing.Racers(4) as racers:
        for _ in racing.rounds(10, within=6):
            lost, message = lost_stream(), identity.new_message_id()
            losses.lose_all_wakes()
            sweep = partial(sweep_once, world.worker().pk)
            prompt = partial(losses.person_prompts, lost.id, "At once", message_id=message)

            outcomes = racers.round(sweep, sweep, prompt, prompt)

            assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
            assert_holds(lost)
            assert SessionInput.objects.filter(pk=message).count() == 1
            assert lost.id in world.wakes()


def sweep_once(worker_id: str) -> list[Any]:
    return list(service.recover_all(worker_id=worker_id, now=LATER))


def test_no_session_was_claimed_twice_at_one_boundary() -> None:
    for _ in against(5, lost_stream, recovering):
        pass

    twice = RecoveryClaim.objects.values("session", "lost_fence").annotate(n=Count("pk")).filter(n__gt=1)
    assert not twice.exists()
