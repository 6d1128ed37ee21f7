"""The write primitive: all or nothing, in one order, by one owner."""

import threading
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from django.db import IntegrityError
from django.db.models import Model

from schema.events import PromptWithdrawn, SessionCreated, SessionUpdated
from sessions_app import identity, log
from sessions_app.log import (
    FenceLost,
    Held,
    ProjectionConflict,
    SessionGone,
    StoredEvent,
    begin_log,
    listeners,
    session_transaction,
)
from sessions_app.models import Session, SessionEvent, SessionInput, statements
from tests.support import children, racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)

Told = list[tuple[str, list[StoredEvent]]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What listeners were told during the test, by session."""
    heard: Told = []
    monkeypatch.setattr(
        listeners, "_listeners", [lambda session_id, events: heard.append((session_id, events))]
    )
    return heard


class Broken(Exception):
    """Something failed in the middle."""


# Sequences


def test_each_event_takes_the_next_seq_and_the_session_stores_the_newest() -> None:
    session_id = world.session()

    with session_transaction(session_id, now=world.NOW) as tx:
        seqs = [tx.append(SessionUpdated(title=f"{number}")) for number in range(3)]

    assert seqs == [2, 3, 4]
    assert world.seqs(session_id) == [1, 2, 3, 4]
    assert world.row(session_id).head_seq == tx.head_seq == 4
    assert world.row(session_id).title == "2"


def test_a_transaction_without_events_moves_no_seq_and_stores_its_columns() -> None:
    session_id = world.session()

    with session_transaction(session_id, now=world.NOW) as tx:
        tx.set(step_count=7)

    assert world.row(session_id).step_count == 7
    assert world.row(session_id).head_seq == 1


@committing
def test_threads_that_write_to_one_session_leave_a_log_without_gap_or_repeat() -> None:
    session_id, other = world.session(), world.session()
    before = world.everything_of(other)

    def write(name: int) -> list[int]:
        mine = []
        for number in range(15):
            with session_transaction(session_id, now=world.NOW) as tx:
                mine += [tx.append(SessionUpdated(title=f"{name}-{number}-{part}")) for part in "ab"]
        return mine

    written = racing.together([partial(write, name) for name in range(8)])

    taken = sorted(seq for seqs in written for seq in seqs)
    assert taken == list(range(2, 2 + 8 * 15 * 2))
    assert world.seqs(session_id) == [1, *taken]
    assert world.row(session_id).head_seq == taken[-1]
    assert all(
        second == first + 1 for seqs in written for first, second in zip(seqs[::2], seqs[1::2], strict=True)
    )
    assert world.everything_of(other) == before


# All or nothing


def test_a_body_that_fails_leaves_nothing_of_what_it_did(told: Told) -> None:
    session_id = world.session()
    told.clear()
    before = world.everything_of(session_id)

    with pytest.raises(Broken), session_transaction(session_id, now=world.NOW) as tx:
        tx.append(SessionUpdated(title="never"))
        tx.set(step_count=9)
        tx.flush()
        raise Broken

    assert world.everything_of(session_id) == before
    assert told == []


def test_an_event_that_does_not_fit_its_row_takes_the_whole_transaction_back(told: Told) -> None:
    session_id = world.session()
    told.clear()
    before = world.everything_of(session_id)

    with (
        pytest.raises(ProjectionConflict) as refused,
        session_transaction(session_id, now=world.NOW) as tx,
    ):
        tx.append(SessionUpdated(title="never"))
        tx.append(PromptWithdrawn(message="msg_nobody-sent-this"))

    assert refused.value.event_type == "prompt.withdrawn"
    assert refused.value.target == "msg_nobody-sent-this"
    assert world.everything_of(session_id) == before
    assert told == []


def test_events_that_cannot_be_stored_take_their_projections_back(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = world.session()
    message_id = identity.new_message_id()
    told.clear()
    before = world.everything_of(session_id)

    def fail_events(*rows: Model) -> None:
        if isinstance(rows[0], SessionEvent):
            raise Broken
        insert(*rows)

    insert = statements.insert
    monkeypatch.setattr(statements, "insert", fail_events)
    with pytest.raises(Broken):
        world.prompt(session_id, message_id=message_id)

    assert world.everything_of(session_id) == before
    assert world.wakes() == []
    assert told == []


@committing
@pytest.mark.parametrize("moment", ["die_in_the_body", "die_before_the_commit"])
def test_a_process_killed_inside_a_transaction_leaves_nothing(moment: str) -> None:
    session_id = world.session()
    before = world.everything_of(session_id)

    assert children.run("tests.log.dying", moment, session_id) in (9, -9)

    assert world.everything_of(session_id) == before


@committing
def test_a_process_killed_in_an_admission_leaves_neither_prompt_nor_wake() -> None:
    session_id, message_id = world.session(), identity.new_message_id()
    before = world.everything_of(session_id)

    assert children.run("tests.log.dying", "die_in_an_admission", session_id, message_id) == -9

    assert world.everything_of(session_id) == before
    assert world.wakes() == []
    assert world.prompt(session_id, message_id=message_id) == message_id


@committing
def test_a_process_killed_right_after_the_commit_leaves_all_of_it() -> None:
    session_id = world.session()

    assert children.run("tests.log.dying", "die_after_the_commit", session_id) == -9

    assert world.row(session_id).title == "stored"
    assert world.event_types(session_id) == ["session.created", "session.updated"]


@committing
def test_a_session_transaction_never_opens_inside_another() -> None:
    session_id = world.session()

    with pytest.raises(RuntimeError, match="durable"), session_transaction(session_id, now=world.NOW):  # noqa: SIM117
        with session_transaction(session_id, now=world.NOW):
            pytest.fail("a commit that another transaction could take back is no commit")


# The owner


def lost(held: Held) -> Iterator[Held]:
    yield Held(session_id=held.session_id, worker_id=held.worker_id, fence=held.fence + 1)
    yield Held(session_id=held.session_id, worker_id=held.worker_id, fence=held.fence - 1)
    yield Held(session_id=held.session_id, worker_id=world.worker().pk, fence=held.fence)


def test_whoever_is_not_the_owner_under_this_fence_writes_nothing() -> None:
    held = world.owned()
    before = world.everything_of(held.session_id)

    for stranger in lost(held):
        with pytest.raises(FenceLost) as refused, world.transaction(stranger):
            pytest.fail("the body of a lost owner ran")
        assert (refused.value.session_id, refused.value.fence) == (held.session_id, stranger.fence)

    assert world.everything_of(held.session_id) == before


def test_an_owner_that_was_replaced_and_comes_back_writes_nothing() -> None:
    held = world.owned()
    world.change(held.session_id, owner_id=None)
    world.prompt(held.session_id)
    newer = world.take(held.session_id)
    before = world.everything_of(held.session_id)

    with pytest.raises(FenceLost), world.transaction(held) as tx:
        tx.append(SessionUpdated(title="never"))
    with world.transaction(newer):
        pass

    assert newer.fence == held.fence + 1
    assert world.everything_of(held.session_id) == before


@committing
def test_an_owner_replaced_while_it_waited_for_the_lock_writes_nothing() -> None:
    held = world.owned()
    is_waiting, may_commit = threading.Event(), threading.Event()

    def replace() -> None:
        with session_transaction(held.session_id, now=world.NOW) as tx:
            tx.set(owner_id=None)
            is_waiting.set()
            may_commit.wait(10)

    def write() -> None:
        is_waiting.wait(10)
        may_commit.set()
        with world.transaction(held) as tx:
            tx.append(SessionUpdated(title="never"))

    outcomes = racing.together([replace, write])

    assert isinstance(outcomes[1], FenceLost)
    assert world.row(held.session_id).title == ""


def test_a_session_that_is_not_there_is_gone_for_owners_and_others() -> None:
    held = Held(session_id=identity.new_session_id(), worker_id=world.worker().pk, fence=1)

    for claim in (None, held):
        with (
            pytest.raises(SessionGone) as refused,
            session_transaction(held.session_id, now=world.NOW, held=claim),
        ):
            pytest.fail("the body ran for a session that is gone")
        assert refused.value.session_id == held.session_id


# Who is told


@committing
def test_listeners_are_told_after_the_commit_what_anybody_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = world.session()
    seen: list[list[int]] = []

    def look(told_id: str, events: Sequence[StoredEvent]) -> None:
        assert told_id == session_id
        seen.append([event.seq for event in events])
        seen.extend(racing.together([lambda: world.seqs(session_id)]))

    monkeypatch.setattr(listeners, "_listeners", [])
    log.on_commit(look)
    log.on_commit(look)
    with session_transaction(session_id, now=world.NOW) as tx:
        tx.append(SessionUpdated(title="one"))
        tx.append(SessionUpdated(title="two"))
        assert seen == []

    assert seen == [[2, 3], [1, 2, 3]]


def test_a_listener_that_fails_changes_nothing_and_the_next_one_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session_id = world.session()
    heard: list[str] = []

    def fail(told_id: str, events: Sequence[StoredEvent]) -> None:
        raise Broken

    monkeypatch.setattr(listeners, "_listeners", [fail, lambda told_id, events: heard.append(told_id)])
    with session_transaction(session_id, now=world.NOW) as tx:
        tx.append(SessionUpdated(title="stored"))

    assert world.row(session_id).title == "stored"
    assert heard == [session_id]
    assert "log.listener.failed" in caplog.messages


def test_a_commit_without_events_tells_nobody(told: Told) -> None:
    session_id = world.session()
    told.clear()

    with session_transaction(session_id, now=world.NOW) as tx:
        tx.set(step_count=1)

    assert told == []


# The beginning of a log


@committing
def test_of_two_that_begin_the_same_session_one_begins_it_and_the_other_is_refused() -> None:
    user_id = world.user()
    for number in range(10):
        session_id = f"ses_begun-at-once-{number}"

        def begin(title: str, session_id: str = session_id) -> None:
            row = Session(id=session_id, user_id=user_id, created_at=world.NOW, active_at=world.NOW)
            with begin_log(row, now=world.NOW) as tx:
                tx.append(SessionCreated(title=title, agent="default", model="demo:scripted"))

        outcomes = racing.together([lambda: begin("a"), lambda: begin("b")])

        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["IntegrityError", "NoneType"]
        assert world.event_types(session_id) == ["session.created"]
        winner = "a" if outcomes[0] is None else "b"
        assert world.row(session_id).title == winner


def test_a_session_whose_first_events_fail_was_never_there() -> None:
    row = Session(
        id=identity.new_session_id(), user_id=world.user(), created_at=world.NOW, active_at=world.NOW
    )

    with pytest.raises(Broken), begin_log(row, now=world.NOW) as tx:
        tx.append(SessionCreated(title="", agent="default", model="demo:scripted"))
        raise Broken

    assert not Session.objects.filter(pk=row.pk).exists()
    assert SessionInput.objects.count() == 0


@pytest.mark.rows_of_its_own
def test_the_database_itself_refuses_a_second_event_at_a_seq() -> None:
    session_id = world.session()
    taken = SessionEvent.objects.get(session_id=session_id)

    with pytest.raises(IntegrityError):
        SessionEvent.objects.create(
            session_id=session_id, seq=taken.seq, type="session.updated", version=1, data={}, time=world.NOW
        )
