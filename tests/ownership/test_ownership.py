"""Taking, verifying and giving up a session."""

from functools import partial

import pytest

from schema.events import AttemptPrepared, SessionUpdated, StepStarted, TextStarted
from sessions_app import inbox, ownership
from sessions_app.log import FenceLost, Held, SessionGone, session_transaction
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionMessage, Worker
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)


def attempt_to_take(session_id: str, worker_id: str) -> Held | ownership.Refusal:
    with session_transaction(session_id, now=world.NOW) as tx:
        return ownership.take(tx, worker_id=worker_id)


def attempt_to_release(held: Held) -> bool:
    with world.transaction(held) as tx:
        return ownership.release(tx)


# Taking


def test_taking_a_session_that_is_due_makes_the_worker_its_owner_under_a_new_fence() -> None:
    session_id, neighbour = world.session(), world.session()
    world.prompt(session_id)
    world.prompt(neighbour)
    before = world.everything_of(neighbour)
    worker_id = world.worker().pk

    held = world.take(session_id, worker_id)

    assert held == Held(session_id=session_id, worker_id=worker_id, fence=1)
    assert (world.row(session_id).owner_id, world.row(session_id).fence) == (worker_id, 1)
    assert ownership.owned_sessions(worker_id=worker_id) == {(session_id, 1)}
    assert world.everything_of(neighbour) == before


def test_a_session_with_nothing_due_is_not_taken() -> None:
    session_id = world.session()
    world.prompt(session_id, wake=False)
    before = world.everything_of(session_id)

    assert attempt_to_take(session_id, world.worker().pk) is ownership.Refusal.NOTHING_DUE
    assert world.everything_of(session_id) == before


def test_a_run_owed_is_due_when_its_time_has_come() -> None:
    session_id, worker_id = world.session(), world.worker().pk
    world.change(session_id, owed_at=world.after(1))
    assert attempt_to_take(session_id, worker_id) is ownership.Refusal.NOTHING_DUE

    world.change(session_id, owed_at=world.NOW)

    assert isinstance(attempt_to_take(session_id, worker_id), Held)


def test_what_is_held_makes_no_session_due() -> None:
    session_id = world.session()
    world.prompt(session_id)
    world.change(session_id, hold_seq=world.row(session_id).head_seq, hold_reason="paused")

    assert attempt_to_take(session_id, world.worker().pk) is ownership.Refusal.NOTHING_DUE


def test_an_owned_session_is_not_taken_whether_its_owner_lives_or_not() -> None:
    held = world.owned()
    world.prompt(held.session_id)
    Worker.objects.filter(pk=held.worker_id).update(dead_at=world.NOW, death="proved")
    before = world.everything_of(held.session_id)

    assert attempt_to_take(held.session_id, world.worker().pk) is ownership.Refusal.OWNED
    assert attempt_to_take(held.session_id, held.worker_id) is ownership.Refusal.OWNED
    assert world.everything_of(held.session_id) == before


def test_a_parked_session_is_not_taken() -> None:
    session_id = world.session()
    world.change(session_id, owed_at=world.NOW, parked=True)

    assert attempt_to_take(session_id, world.worker().pk) is ownership.Refusal.PARKED


@pytest.mark.parametrize("left_open", ["message", "attempt", "part"])
@pytest.mark.rows_of_its_own
def test_a_session_that_somebody_died_in_is_settled_before_it_is_taken(left_open: str) -> None:
    held = world.owned()
    with world.transaction(held) as tx:
        tx.append(StepStarted(message="msg_open-step", agent="default", model="demo:scripted", step=1))
        tx.append(
            AttemptPrepared(
                attempt="att_open", message="msg_open-step", purpose="step", ordinal=1, provider="demo",
                model="scripted", request_digest="0" * 64,
            )
        )  # fmt: skip
        tx.append(TextStarted(message="msg_open-step", part="prt_open", index=0))
    close_all_but(left_open)
    world.change(held.session_id, owner_id=None, owed_at=world.NOW)

    assert attempt_to_take(held.session_id, world.worker().pk) is ownership.Refusal.UNSETTLED
    assert ownership.is_orphan(held.session_id, now=world.NOW)


def close_all_but(left_open: str) -> None:
    if left_open != "message":
        SessionMessage.objects.filter(completed_at=None).update(completed_at=world.NOW)
    if left_open != "attempt":
        ProviderAttempt.objects.update(settled_at=world.NOW)
    if left_open != "part":
        MessagePart.objects.update(ended_at=world.NOW)


@committing
def test_of_many_workers_that_take_a_session_at_once_one_owns_it() -> None:
    session_id = world.session()
    workers = [world.worker().pk for _ in range(8)]
    for fence in range(1, 6):
        world.change(session_id, owner_id=None, owed_at=world.NOW)

        outcomes = racing.together([partial(attempt_to_take, session_id, each) for each in workers])

        winners = [outcome for outcome in outcomes if isinstance(outcome, Held)]
        assert [(winner.worker_id, winner.fence) for winner in winners] == [
            (world.row(session_id).owner_id, fence)
        ]
        assert outcomes.count(ownership.Refusal.OWNED) == 7


# Verifying


def test_the_owner_is_verified_and_nobody_else() -> None:
    held = world.owned()
    ownership.verify(held=held)

    for stranger in (
        Held(session_id=held.session_id, worker_id=held.worker_id, fence=held.fence + 1),
        Held(session_id=held.session_id, worker_id=world.worker().pk, fence=held.fence),
    ):
        with pytest.raises(FenceLost):
            ownership.verify(held=stranger)
    with pytest.raises(SessionGone):
        ownership.verify(held=Held(session_id="ses_not-there", worker_id=held.worker_id, fence=1))


# Releasing


def test_a_release_leaves_no_owner_no_stop_request_and_no_wake_that_would_spare_a_later_one() -> None:
    held = world.owned()
    world.change(
        held.session_id,
        interrupt_fence=held.fence,
        interrupt_seq=1,
        interrupt_resume=True,
        wake_enqueued_at=world.NOW,
    )

    assert attempt_to_release(held)

    session = world.row(held.session_id)
    assert (session.owner_id, session.fence) == (None, held.fence)
    assert (session.interrupt_fence, session.interrupt_seq, session.interrupt_resume) == (None, None, False)
    world.prompt(held.session_id)
    assert world.wakes().count(held.session_id) == 2


def test_an_owner_keeps_a_session_with_a_run_owed_or_anything_to_promote() -> None:
    held = world.owned()
    world.change(held.session_id, owed_at=world.after(3600))
    assert not attempt_to_release(held)

    world.change(held.session_id, owed_at=None)
    message_id = world.prompt(held.session_id, wake=False)
    assert not attempt_to_release(held)
    assert world.row(held.session_id).owner_id == held.worker_id

    inbox.withdraw(session_id=held.session_id, message_id=message_id, now=world.NOW)
    assert attempt_to_release(held)


def test_what_is_held_does_not_keep_the_owner() -> None:
    held = world.owned()
    world.prompt(held.session_id)
    world.change(held.session_id, hold_seq=world.row(held.session_id).head_seq, hold_reason="paused")

    assert attempt_to_release(held)


def test_a_lost_owner_cannot_release_what_another_owns() -> None:
    held = world.owned()
    world.change(held.session_id, owner_id=None, owed_at=world.NOW)
    newer = world.take(held.session_id)

    with pytest.raises(FenceLost):
        attempt_to_release(held)

    assert world.row(held.session_id).owner_id == newer.worker_id


# Orphans


def test_an_orphan_is_a_session_whose_owner_is_dead_and_nothing_else() -> None:
    living, idle = world.owned(), world.session()
    orphan, left = world.owned(), world.owned()
    Worker.objects.filter(pk=orphan.worker_id).update(dead_at=world.NOW, death="assumed")
    Worker.objects.filter(pk=left.worker_id).update(stopped_at=world.NOW)

    found = {
        session_id: ownership.is_orphan(session_id, now=world.NOW)
        for session_id in (living.session_id, idle, orphan.session_id, left.session_id, "ses_not-there")
    }

    assert [session_id for session_id, is_orphan in found.items() if is_orphan] == [
        orphan.session_id,
        left.session_id,
    ]


def test_a_worker_that_owns_a_session_cannot_be_deleted() -> None:
    held = world.owned()

    with pytest.raises(Exception, match="protected"):
        Worker.objects.get(pk=held.worker_id).delete()

    assert Session.objects.filter(owner_id=held.worker_id).exists()


# Races


class Owner:
    """A worker that drains one session as a drain does: look, promote, release when nothing is left."""

    def __init__(self, session_id: str) -> None:
        self.held = world.take(session_id)
        world.promote(self.held)

    def release_or_promote(self) -> list[str] | None:
        """What was promoted; None when the session was released."""
        with world.transaction(self.held) as tx:
            promoted = inbox.promote(tx)
            inbox.clear(tx)
            if promoted or not ownership.release(tx):
                return promoted
            return None


@committing
def test_a_prompt_admitted_against_a_release_is_seen_by_the_owner_or_leaves_a_wake() -> None:
    session_id = world.session()
    world.prompt(session_id)
    owner = Owner(session_id)
    outcomes = set()
    with racing.Racers(2) as racers:
        for number in racing.rounds(2000, within=6):
            world.forget_wakes(session_id)
            message_id = f"msg_against-release-{number}"

            admitted, promoted = racers.round(
                partial(world.prompt, session_id, message_id=message_id),
                owner.release_or_promote,
            )

            assert admitted == message_id
            outcomes.add("released" if promoted is None else "seen")
            if promoted is None:
                assert world.row(session_id).owner_id is None
                assert world.wakes() == [session_id]
                owner = Owner(session_id)
            else:
                assert promoted == [message_id]
            assert world.input_row(message_id).promoted_seq is not None
    assert outcomes == {"released", "seen"}


@committing
def test_a_takeover_against_the_owners_writes_lets_no_write_of_the_old_owner_through() -> None:
    session_id = world.session()
    with racing.Racers(2) as racers:
        for _ in racing.rounds(500, within=6):
            world.change(session_id, owner_id=None, owed_at=world.NOW)
            held = world.take(session_id)

            def write(held: Held = held) -> int:
                with world.transaction(held) as tx:
                    return tx.append(SessionUpdated(title="by the old owner"))

            def take_over() -> int:
                with session_transaction(session_id, now=world.NOW) as tx:
                    tx.set(owner_id=None, fence=tx.session.fence + 1)
                    return tx.head_seq

            written, boundary = racers.round(write, take_over)

            if isinstance(written, FenceLost):
                assert world.row(session_id).head_seq == boundary
            else:
                assert written == boundary
