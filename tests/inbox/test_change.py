"""Changing what waits: withdraw, or switch between steer and queue."""

from functools import partial
from typing import Any

import pytest

from schema.inputs import Delivery
from schema.problems import AlreadyPromoted, PromptNotFound, Withdrawn
from sessions_app import identity, inbox
from sessions_app.log import SessionGone
from sessions_app.models import SessionInput, SessionMessage
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)


def withdraw(session_id: str, message_id: str) -> None:
    inbox.withdraw(session_id=session_id, message_id=message_id, now=world.NOW)


def change(session_id: str, message_id: str, delivery: Delivery) -> SessionInput:
    return inbox.change_delivery(
        session_id=session_id, message_id=message_id, delivery=delivery, now=world.NOW
    )


def test_a_withdrawn_prompt_is_never_promoted_and_the_others_are() -> None:
    session_id = world.session()
    kept, taken_back, also_kept = (world.prompt(session_id) for _ in range(3))

    withdraw(session_id, taken_back)

    assert world.input_row(taken_back).withdrawn_seq == world.row(session_id).head_seq
    assert world.promote(world.take(session_id)) == [kept, also_kept]
    assert not SessionMessage.objects.filter(pk=taken_back).exists()


def test_withdrawing_again_changes_nothing_and_says_so() -> None:
    session_id = world.session()
    message_id = world.prompt(session_id)
    withdraw(session_id, message_id)
    before = world.everything_of(session_id)

    with pytest.raises(Withdrawn):
        withdraw(session_id, message_id)

    assert world.everything_of(session_id) == before


def test_a_session_whose_only_prompt_was_withdrawn_has_nothing_due() -> None:
    session_id = world.session()
    withdraw(session_id, world.prompt(session_id))

    assert not inbox.is_due(world.row(session_id), now=world.NOW)
    assert not inbox.has_promotable(world.row(session_id))


@pytest.mark.parametrize("verb", [withdraw, partial(change, delivery="queue")])
def test_what_the_model_may_have_read_is_changed_no_more(verb: Any) -> None:
    session_id = world.session()
    message_id = world.prompt(session_id)
    world.promote(world.take(session_id))
    before = world.everything_of(session_id)

    with pytest.raises(AlreadyPromoted):
        verb(session_id, message_id)

    assert world.everything_of(session_id) == before


def test_a_withdrawn_prompt_changes_its_delivery_no_more() -> None:
    session_id = world.session()
    message_id = world.prompt(session_id)
    withdraw(session_id, message_id)

    with pytest.raises(Withdrawn):
        change(session_id, message_id, "queue")


@pytest.mark.parametrize("verb", [withdraw, partial(change, delivery="queue")])
def test_a_prompt_of_another_session_is_not_found(verb: Any) -> None:
    session_id, strangers = world.session(), world.session()
    message_id = world.prompt(strangers)
    before = world.everything_of(strangers)

    with pytest.raises(PromptNotFound):
        verb(session_id, message_id)
    with pytest.raises(PromptNotFound):
        verb(session_id, "msg_never-sent")
    with pytest.raises(SessionGone):
        verb(identity.new_session_id(), message_id)

    assert world.everything_of(strangers) == before


def test_a_switched_prompt_keeps_its_place_and_its_wake() -> None:
    session_id = world.session()
    first = world.prompt(session_id, delivery="queue")
    second = world.prompt(session_id, delivery="queue")
    world.forget_wakes(session_id)

    changed = change(session_id, second, "steer")

    assert (changed.delivery, changed.delivery_admitted) == ("steer", "queue")
    assert [row.pk for row in world.pending(session_id)] == [first, second]
    assert world.event_types(session_id)[-1] == "prompt.delivery_changed"
    assert world.wakes() == [session_id]


def test_the_same_delivery_again_is_no_event_and_no_wake() -> None:
    session_id = world.session()
    message_id = world.prompt(session_id)
    world.forget_wakes(session_id)
    before = world.everything_of(session_id)

    change(session_id, message_id, "steer")

    assert world.everything_of(session_id) == before
    assert world.wakes() == []


def test_a_switched_prompt_that_was_admitted_only_still_wakes_nobody() -> None:
    session_id = world.session()
    message_id = world.prompt(session_id, wake=False)

    change(session_id, message_id, "queue")

    assert world.wakes() == []


# Against promotion


def promoted(message_id: str) -> bool:
    return SessionMessage.objects.filter(pk=message_id).exists()


@committing
def test_a_withdrawal_against_a_promotion_either_takes_back_or_is_told_that_it_came_too_late() -> None:
    held, outcomes = world.owned(), set()
    with racing.Racers(2) as racers:
        for number in racing.rounds(2000, within=5):
            message_id = f"msg_against-promotion-{number}"
            world.prompt(held.session_id, message_id=message_id)

            withdrawn, entered = racers.round(
                partial(withdraw, held.session_id, message_id), partial(world.promote, held)
            )

            row = world.input_row(message_id)
            outcomes.add(type(withdrawn))
            if withdrawn is None:
                assert (entered, row.promoted_seq) == ([], None)
                assert row.withdrawn_seq is not None
            else:
                assert isinstance(withdrawn, AlreadyPromoted)
                assert (entered, row.withdrawn_seq) == ([message_id], None)
            assert promoted(message_id) is (row.promoted_seq is not None)
    assert outcomes == {type(None), AlreadyPromoted}


@committing
def test_a_switch_against_a_promotion_never_loses_or_doubles_the_prompt() -> None:
    held = world.owned()
    with racing.Racers(2) as racers:
        for number in racing.rounds(800, within=5):
            message_id = f"msg_switched-{number}"
            world.prompt(held.session_id, message_id=message_id, delivery="queue")

            switched, entered = racers.round(
                partial(change, held.session_id, message_id, "steer"), partial(world.promote, held)
            )

            assert entered == [message_id]
            assert promoted(message_id)
            row = world.input_row(message_id)
            assert row.delivery == ("steer" if isinstance(switched, SessionInput) else "queue")
            assert isinstance(switched, (SessionInput, AlreadyPromoted))


@committing
def test_two_promotions_at_once_make_one_message_of_each_prompt() -> None:
    held = world.owned()
    with racing.Racers(2) as racers:
        for _ in racing.rounds(300, within=5):
            sent = [world.prompt(held.session_id) for _ in range(2)]

            entered = racers.round(partial(world.promote, held), partial(world.promote, held))

            assert sorted(entered) == [[], sent]
    promotions = world.event_types(held.session_id).count("prompt.promoted")
    assert promotions == SessionMessage.objects.filter(session_id=held.session_id).count()
