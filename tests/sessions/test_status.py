"""Status: what is true of a session, from durable facts and the life of its owner alone."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schema.attempts import AttemptError
from schema.events import AttemptDispatched, AttemptPrepared, AttemptUnknown, StepStarted
from schema.status import Status
from sessions_app import ownership, sessions
from sessions_app.log import Held
from sessions_app.models import ProviderAttempt, Session, Worker
from sessions_app.sessions import orphans, undecided
from tests.support import children, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)


def status(session_id: str) -> Status:
    return sessions.get_status(session_id, now=world.NOW)


def idle() -> str:
    return world.session()


def with_a_prompt(**arguments: Any) -> Callable[[], str]:
    def make() -> str:
        session_id = world.session()
        world.prompt(session_id, **arguments)
        return session_id

    return make


def paused() -> str:
    session_id = with_a_prompt()()
    sessions.interrupt(session_id=session_id, now=world.NOW)
    return session_id


def with_columns(**columns: Any) -> Callable[[], str]:
    def make() -> str:
        session_id = world.session()
        world.change(session_id, **columns)
        return session_id

    return make


def owned() -> str:
    return world.owned().session_id


def owned_by_one_that(**ended: Any) -> Callable[[], str]:
    def make() -> str:
        held = world.owned()
        Worker.objects.filter(pk=held.worker_id).update(**ended)
        return held.session_id

    return make


def parked_before_it_was_settled(*, by: Callable[[], Worker] | None) -> Callable[[], str]:
    """Its owner and whoever parked it are gone, or ``by`` is about to settle it."""

    def make() -> str:
        session_id = owned_by_one_that(dead_at=world.NOW, death="proved")()
        world.change(session_id, parked=True, recovering_id=by().pk if by else None)
        return session_id

    return make


def dead_worker() -> Worker:
    return world.worker(dead_at=world.NOW, death="proved")


def with_an_unknown_attempt(*, decided: bool = False) -> Callable[[], str]:
    def make() -> str:
        held = world.owned()
        begin_attempt(held.session_id)
        with world.transaction(held) as tx:
            error = AttemptError(error_class="ambiguous", reason="crash", message="Lost.")
            tx.append(AttemptUnknown(attempt="att_one", error=error))
            tx.set(owner_id=None)
        if decided:
            ProviderAttempt.objects.update(decided_at=world.NOW)
        return held.session_id

    return make


def begin_attempt(session_id: str) -> None:
    row = world.row(session_id)
    assert row.owner_id is not None
    held = Held(session_id=session_id, worker_id=row.owner_id, fence=row.fence)
    with world.transaction(held) as tx:
        tx.append(StepStarted(message="msg_the-answer", agent="default", model="demo:scripted", step=1))
        tx.append(
            AttemptPrepared(
                attempt="att_one", message="msg_the-answer", purpose="step", ordinal=1, provider="demo",
                model="scripted", request_digest="0" * 64,
            )
        )  # fmt: skip
        tx.append(AttemptDispatched(attempt="att_one"))


@pytest.mark.parametrize(
    ("make", "state"),
    [
        (idle, "idle"),
        (with_a_prompt(), "queued"),
        (with_a_prompt(delivery="queue"), "queued"),
        (with_a_prompt(wake=False), "idle"),
        (paused, "idle"),
        (with_columns(owed_at=world.after(30)), "queued"),
        (with_columns(parked=True), "needs_decision"),
        (with_columns(parked=True, owed_at=world.NOW), "needs_decision"),
        (owned, "busy"),
        (owned_by_one_that(dead_at=world.NOW, death="assumed"), "orphaned"),
        (owned_by_one_that(stopped_at=world.NOW), "orphaned"),
        (parked_before_it_was_settled(by=None), "needs_decision"),
        (parked_before_it_was_settled(by=dead_worker), "needs_decision"),
        (parked_before_it_was_settled(by=world.worker), "orphaned"),
        (with_an_unknown_attempt(), "needs_decision"),
        (with_an_unknown_attempt(decided=True), "idle"),
    ],
)
@pytest.mark.rows_of_its_own
def test_the_state_of_a_session(make: Callable[[], str], state: str) -> None:
    with_a_prompt()()

    session_id = make()

    assert status(session_id).state == state
    for listed, wanted in ((undecided.needing_decision, "needs_decision"), (orphans.orphaned, "orphaned")):
        rows = listed(Session.objects.all())
        assert [row.pk for row in rows] == ([session_id] if state == wanted else [])


def test_a_status_counts_what_waits_and_names_what_runs() -> None:
    held = world.owned()
    begin_attempt(held.session_id)
    for delivery, count in (("steer", 2), ("queue", 3)):
        for _ in range(count):
            world.prompt(held.session_id, delivery=delivery)  # type: ignore[arg-type]

    found = status(held.session_id)

    assert (found.pending.steer, found.pending.queue) == (2, 3)
    assert (found.owner_alive, found.attempt) == (True, "att_one")
    assert found.head_seq == world.row(held.session_id).head_seq


def test_an_owner_that_missed_two_heartbeats_is_quiet_and_not_dead(settings: Any) -> None:
    settings.HOLDFAST_HEARTBEAT_SECONDS = 5
    held = world.owned()
    heard = Worker.objects.filter(pk=held.worker_id)

    heard.update(heartbeat_at=world.after(-10))
    assert status(held.session_id).owner_quiet_since is None
    heard.update(heartbeat_at=world.after(-11))

    found = status(held.session_id)
    assert (found.state, found.owner_alive, found.owner_quiet_since) == ("busy", True, "2031-05-04T11:59:49Z")


def test_a_pause_is_shown_until_something_lifts_it() -> None:
    session_id = paused()
    assert status(session_id).paused

    world.prompt(session_id)

    assert not status(session_id).paused
    assert status(session_id).state == "queued"


@pytest.mark.rows_of_its_own
def test_an_unknown_attempt_is_named_until_it_is_decided() -> None:
    session_id = with_an_unknown_attempt()()
    assert status(session_id).unknown.attempts == ("att_one",)

    ProviderAttempt.objects.update(decided_at=world.NOW)

    assert status(session_id).unknown.attempts == ()


@committing
def test_a_session_whose_worker_was_killed_is_orphaned_at_once(tmp_path: Path) -> None:
    with children.start("tests.ownership.holders", "hold", str(tmp_path)) as process:
        assert process.stdout is not None
        worker_id = process.stdout.readline().strip()
        session_id = world.session()
        world.prompt(session_id)
        world.take(session_id, worker_id)
        assert status(session_id).state == "busy"

        process.kill()
        process.wait(timeout=20)

    found = status(session_id)
    assert (found.state, found.owner_alive) == ("orphaned", False)
    assert Worker.objects.get(pk=worker_id).death == "proved"
    assert ownership.is_orphan(session_id, now=world.NOW)


def test_the_owner_of_many_sessions_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [owned() for _ in range(3)]
    Session.objects.update(owner=world.row(ids[0]).owner_id)
    looked_at: list[str] = []

    def look(worker: Worker, *, now: datetime) -> bool:
        looked_at.append(worker.pk)
        return False

    monkeypatch.setattr(ownership, "prove_death", look)

    found = sessions.statuses(ids, now=world.NOW)

    assert looked_at == [world.row(ids[0]).owner_id]
    assert {status.state for status in found.values()} == {"busy"}


def test_a_list_of_statuses_costs_the_same_number_of_statements_however_long_it_is() -> None:
    kinds = (idle, with_a_prompt(), owned, owned, paused, with_an_unknown_attempt())
    rows = [world.row(make()) for make in kinds]
    more = [idle(), owned(), paused(), *(row.pk for row in rows)]

    with CaptureQueriesContext(connection) as one:
        found = sessions.statuses([row.pk for row in rows], now=world.NOW)
    with CaptureQueriesContext(connection) as many:
        sessions.statuses(more, now=world.NOW)

    assert len(many) == len(one)
    assert [found[row.pk].state for row in rows] == [
        "idle",
        "queued",
        "busy",
        "busy",
        "idle",
        "needs_decision",
    ]
