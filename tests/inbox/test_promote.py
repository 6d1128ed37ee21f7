"""Promotion: what enters the transcript, in which order, and what is owed from then on."""

import pytest

from sessions_app import inbox
from sessions_app.log import Held
from sessions_app.models import SessionMessage
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def promote(held: Held) -> list[str]:
    with world.transaction(held) as tx:
        return inbox.promote(tx)


def transcript(session_id: str) -> list[str]:
    return list(
        SessionMessage.objects.filter(session_id=session_id).order_by("seq").values_list("pk", flat=True)
    )


def test_all_steers_enter_in_the_order_of_their_admission_and_the_queue_waits() -> None:
    session_id = world.session()
    queued = world.prompt(session_id, delivery="queue")
    steers = [world.prompt(session_id) for _ in range(3)]
    held = world.take(session_id)

    assert promote(held) == steers
    assert transcript(session_id) == steers
    assert [row.pk for row in world.pending(session_id)] == [queued]


def test_without_steers_one_queued_prompt_enters_and_the_next_one_waits() -> None:
    session_id = world.session()
    queue = [world.prompt(session_id, delivery="queue") for _ in range(3)]
    held = world.take(session_id)

    assert [promote(held) for _ in range(4)] == [queue[:1], queue[1:2], queue[2:], []]
    assert transcript(session_id) == queue


def test_steers_alone_leave_the_queue_where_it_is() -> None:
    session_id = world.session()
    world.prompt(session_id, delivery="queue")
    steer = world.prompt(session_id)
    held = world.take(session_id)

    with world.transaction(held) as tx:
        assert inbox.promote_steers(tx) == [steer]
    with world.transaction(held) as tx:
        assert inbox.promote_steers(tx) == []


def test_what_is_held_is_passed_over_and_what_came_later_enters() -> None:
    session_id = world.session()
    held_steer, held_queued = world.prompt(session_id), world.prompt(session_id, delivery="queue")
    boundary = world.row(session_id).head_seq
    newer = world.prompt(session_id, delivery="queue")
    world.change(session_id, hold_seq=boundary, hold_reason="undecided")
    held = world.take(session_id)

    assert promote(held) == [newer]
    assert promote(held) == []
    assert [row.pk for row in world.pending(session_id)] == [held_steer, held_queued]


def test_once_a_drain_runs_it_promotes_also_what_wanted_no_wake() -> None:
    session_id = world.session()
    quiet, loud = world.prompt(session_id, wake=False), world.prompt(session_id)

    assert promote(world.take(session_id)) == [quiet, loud]


def test_a_promotion_owes_a_run_in_the_same_transaction() -> None:
    session_id = world.session()
    world.prompt(session_id)
    held = world.take(session_id)

    promote(held)

    assert world.row(session_id).owed_at == world.NOW


def test_promoting_nothing_owes_nothing_and_writes_no_event() -> None:
    held = world.owned()
    before = world.everything_of(held.session_id)

    assert promote(held) == []

    assert world.everything_of(held.session_id) == before


def test_a_persons_prompt_resets_the_steps_and_the_recoveries_and_nothing_else_does() -> None:
    held = world.owned()
    for origin, left in (("recovery", 7), ("system", 7), ("user", 0)):
        world.change(held.session_id, step_count=7, recovery_count=7)
        inbox.admit(
            session_id=held.session_id, message_id=f"msg_by-somebody-{origin}", text="Go on",
            delivery="steer", wake=True, now=world.NOW, origin=origin,  # type: ignore[arg-type]
        )  # fmt: skip

        promote(held)

        session = world.row(held.session_id)
        assert (session.step_count, session.recovery_count) == (left, left)


def test_what_no_person_wrote_enters_as_synthetic() -> None:
    held = world.owned()
    inbox.admit(
        session_id=held.session_id, message_id="msg_rec-0123456789", text="Go on", delivery="steer",
        wake=True, now=world.NOW, origin="recovery",
    )  # fmt: skip

    promote(held)

    message = SessionMessage.objects.get(pk="msg_rec-0123456789")
    assert (message.type, message.origin) == ("synthetic", "recovery")


# The run owed


def test_of_two_times_a_run_is_owed_not_before_the_later() -> None:
    held = world.owned()
    for not_before, expected in ((5, 5), (2, 5), (9, 9)):
        with world.transaction(held) as tx:
            inbox.owe(tx, not_before=world.after(not_before))
        assert world.row(held.session_id).owed_at == world.after(expected)

    with world.transaction(held) as tx:
        inbox.clear(tx)
    assert world.row(held.session_id).owed_at is None


def test_a_promoted_prompt_does_not_hurry_a_retry_that_waits_for_its_time() -> None:
    held = world.owned()
    world.change(held.session_id, owed_at=world.after(30))
    world.prompt(held.session_id)

    promote(held)

    assert world.row(held.session_id).owed_at == world.after(30)
    assert not inbox.is_due(world.row(held.session_id), now=world.after(29))
    assert inbox.is_due(world.row(held.session_id), now=world.after(30))


# Holds


def test_an_undecided_outcome_holds_what_waits_now_and_nothing_if_nothing_waits() -> None:
    idle, waiting = world.owned(), world.owned()
    message_id = world.prompt(waiting.session_id)
    for held in (idle, waiting):
        with world.transaction(held) as tx:
            inbox.hold_undecided(tx)

    assert world.row(idle.session_id).hold_seq is None
    session = world.row(waiting.session_id)
    assert (session.hold_reason, list(inbox.promotable(session))) == ("undecided", [])
    assert [row.pk for row in world.pending(waiting.session_id)] == [message_id]


def test_lifting_lets_everything_go_and_lifting_nothing_says_nothing() -> None:
    held = world.owned()
    message_id = world.prompt(held.session_id)
    with world.transaction(held) as tx:
        inbox.pause(tx, up_to=tx.head_seq)
    assert not inbox.has_promotable(world.row(held.session_id))

    for _ in range(2):
        with world.transaction(held) as tx:
            inbox.lift(tx, because="resume")

    assert world.event_types(held.session_id)[-2:] == ["session.paused", "session.unpaused"]
    assert [row.pk for row in inbox.promotable(world.row(held.session_id))] == [message_id]
