"""Sessions that only need a wake: found wherever they wait, and woken once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery import discovery, service, sweep
from recovery.recover import Recovered
from sessions_app import inbox, sessions
from sessions_app.live import wakes
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import Session, SessionInput
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LONG_AFTER = 10_000.0
SOON = world.after(1e-6)
"""While a pass that began at NOW still goes on."""


def waiting(**columns: Any) -> str:
    """A session whose prompt lost its wake."""
    session_id = world.session()
    world.prompt(session_id)
    world.change(session_id, **({"wake_enqueued_at": None} | columns))
    return session_id


def owed(seconds: float = 0, **columns: Any) -> str:
    session_id = world.session()
    world.change(session_id, owed_at=world.after(seconds), **columns)
    return session_id


def admitted_only() -> str:
    session_id = world.session()
    world.prompt(session_id, wake=False)
    return session_id


def paused() -> str:
    session_id = waiting()
    sessions.interrupt(session_id=session_id, now=world.NOW)
    return session_id


def withdrawn() -> str:
    session_id = waiting()
    pending = world.pending(session_id).get()
    inbox.withdraw(session_id=session_id, message_id=pending.pk, now=world.NOW)
    return session_id


def owned() -> str:
    held = world.owned()
    world.prompt(held.session_id)
    world.change(held.session_id, wake_enqueued_at=None)
    return held.session_id


def held_and_newer() -> str:
    session_id = waiting()
    world.change(session_id, hold_seq=world.row(session_id).head_seq, hold_reason="undecided")
    world.prompt(session_id, wake=False)
    with session_transaction(session_id, now=world.NOW) as tx:
        inbox.admit_own(tx, message_id="msg_rec-0123456789", text="Go on", origin="recovery")
    return session_id


@pytest.mark.parametrize(
    "make",
    [
        waiting,
        owed,
        held_and_newer,
        partial(waiting, wake_enqueued_at=world.after(-LONG_AFTER)),
        partial(waiting, wake_enqueued_at=world.after(1)),
        partial(owed, -LONG_AFTER),
    ],
)
def test_what_is_due_and_waits_for_nobody_is_found(make: Callable[[], str]) -> None:
    session_id = make()
    admitted_only()

    assert discovery.find_due(now=world.NOW) == [session_id]


@pytest.mark.parametrize(
    "make",
    [
        world.session,
        admitted_only,
        paused,
        withdrawn,
        owned,
        partial(owed, 1),
        partial(waiting, parked=True),
        partial(owed, parked=True),
        partial(waiting, wake_enqueued_at=world.after(-1)),
        partial(owed, wake_enqueued_at=world.NOW),
    ],
)
def test_what_is_idle_held_owned_parked_or_woken_lately_is_left_alone(make: Callable[[], str]) -> None:
    session_id, due = make(), waiting()
    world.forget_queue()
    before = world.everything_of(session_id)

    assert discovery.find_due(now=world.NOW) == [due]
    assert service.wake_due(now=world.NOW) == [due]

    assert world.wakes() == [due]
    assert world.everything_of(session_id) == before


def test_a_session_that_is_due_for_two_reasons_gets_one_wake() -> None:
    session_id = waiting(owed_at=world.NOW)
    world.prompt(session_id)
    world.change(session_id, wake_enqueued_at=None)
    world.forget_queue()

    assert service.wake_due(now=world.NOW) == [session_id]
    assert service.wake_due(now=world.after(1)) == []

    assert world.wakes() == [session_id]
    enqueued_at = world.row(session_id).wake_enqueued_at
    assert enqueued_at is not None
    assert world.NOW <= enqueued_at < world.after(1)


def test_a_prompt_that_came_while_a_long_pass_went_on_is_not_woken_a_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    early, late = waiting(), waiting()
    world.forget_queue()
    monkeypatch.setattr(discovery, "find_due", lambda **_: [early, late])
    enqueue = wakes.enqueue

    def meanwhile(tx: SessionTransaction) -> None:
        enqueue(tx)
        if tx.session.pk == early:
            world.change(late, wake_enqueued_at=SOON)

    monkeypatch.setattr(wakes, "enqueue", meanwhile)

    assert service.wake_due(now=world.NOW) == [early]


def test_a_prompt_that_came_while_orphans_were_recovered_is_not_woken_a_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session_id = waiting()
    world.forget_queue()

    def recovering(**_: object) -> list[Recovered]:
        world.change(session_id, wake_enqueued_at=SOON)
        return []

    monkeypatch.setattr(service, "recover_orphans", recovering)

    sweep.sweep(world.NOW, world.worker().pk)
    list(service.recover_all(worker_id=world.worker().pk, now=world.NOW))

    assert world.wakes() == []


def test_a_wake_from_before_the_sweeping_worker_started_counts_as_lost_once() -> None:
    """A process that ended took it along; the queue would give it back only after its retry time."""
    early, late = waiting(wake_enqueued_at=world.after(10)), waiting(wake_enqueued_at=world.after(30))
    started = world.worker(started_at=world.after(20))
    world.forget_queue()

    sweep.sweep(world.after(40), started.pk)
    sweep.sweep(world.after(50), started.pk)

    assert world.wakes() == [early]
    assert world.row(late).wake_enqueued_at == world.after(30)


def test_a_wake_moves_nothing_but_itself() -> None:
    session_id = waiting()
    world.forget_queue()
    before = world.everything_of(session_id)

    service.wake_due(now=world.NOW)

    world.change(session_id, wake_enqueued_at=None)
    assert world.everything_of(session_id) == before


def test_a_session_deleted_after_it_was_found_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = waiting()
    world.forget_queue()
    monkeypatch.setattr(discovery, "find_due", lambda **_: ["ses_deleted-meanwhile", session_id])

    assert service.wake_due(now=world.NOW) == [session_id]


def test_a_session_taken_after_it_was_found_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, served = owned(), waiting()
    inbox.withdraw(session_id=served, message_id=world.pending(served).get().pk, now=world.NOW)
    world.forget_queue()
    monkeypatch.setattr(discovery, "find_due", lambda **_: [taken, served])

    assert service.wake_due(now=world.NOW) == []
    assert world.wakes() == []


@pytest.mark.django_db(transaction=True)
def test_however_many_sweep_at_once_each_session_gets_one_wake() -> None:
    due = sorted([waiting(), waiting(), owed(), owed()])
    clock = service.going_on_from(world.NOW)
    with racing.Racers(6) as racers:
        for _ in racing.rounds(20, within=8):
            world.forget_queue()
            Session.objects.update(wake_enqueued_at=None)

            racers.round(*[lambda: service.wake_due(now=clock())] * 6)

            assert sorted(world.wakes()) == due


# What it costs


@pytest.mark.rows_of_its_own
def test_the_search_reads_partial_indexes_and_not_whole_tables() -> None:
    crowd(2000)
    session_id = waiting()

    plans = explained(discovery.find_due)

    assert len(plans) == 2
    assert "session_owed" in plans[0]
    assert "input_pending" in plans[1]
    assert discovery.find_due(now=world.NOW) == [session_id]


def crowd(size: int) -> None:
    """Many sessions at rest, whose prompts were all answered."""
    user_id = world.user()
    Session.objects.bulk_create(
        Session(
            id=f"ses_at-rest-{number}", user_id=user_id, created_at=world.NOW, active_at=world.NOW,
            agent="default", model="demo:scripted",
        )
        for number in range(size)
    )  # fmt: skip
    SessionInput.objects.bulk_create(
        SessionInput(
            id=f"msg_answered-{number}", session_id=f"ses_at-rest-{number}", origin="user", text="Hello",
            digest="", delivery="steer", delivery_admitted="steer", wake=True, created_at=world.NOW,
            admitted_seq=1, promoted_seq=2,
        )
        for number in range(size)
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def explained(search: Callable[..., object]) -> list[str]:
    """The plan of every statement of the search, in the database's own words."""
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with CaptureQueriesContext(connection) as captured:
        search(now=world.NOW)
    plans = []
    with connection.cursor() as cursor:
        for query in captured.captured_queries:
            cursor.execute(explain + query["sql"])
            plans.append("\n".join(str(row) for row in cursor.fetchall()))
    return plans


def test_a_wake_that_is_on_its_way_is_found_again_once_it_must_have_been_lost() -> None:
    session_id = waiting(wake_enqueued_at=world.NOW)
    lifetime = wakes.lifetime().total_seconds()

    assert discovery.find_due(now=world.after(lifetime)) == []
    assert discovery.find_due(now=world.after(lifetime + 1)) == [session_id]
