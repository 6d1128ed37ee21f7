"""Wakes: one for many, none for ever, and none that outlives a rollback."""

from datetime import timedelta

import pytest

from sessions_app.live import wakes
from sessions_app.log import session_transaction
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def enqueue(session_id: str, *, at: float) -> None:
    with session_transaction(session_id, now=world.after(at)) as tx:
        wakes.enqueue(tx)


def test_whoever_asks_gets_a_wake_and_the_newest_is_remembered() -> None:
    session_id, other = world.session(), world.session()
    for second in range(3):
        enqueue(session_id, at=second)
    enqueue(other, at=0)

    assert world.wakes() == [session_id] * 3 + [other]
    assert world.row(session_id).wake_enqueued_at == world.after(2)


def test_freshness_ends_at_both_ends() -> None:
    lifetime = wakes.lifetime()
    moment = timedelta(microseconds=1)

    assert not wakes.is_fresh(None, now=world.NOW)
    assert wakes.is_fresh(world.NOW, now=world.NOW)
    assert wakes.is_fresh(world.NOW - lifetime, now=world.NOW)
    assert not wakes.is_fresh(world.NOW - lifetime - moment, now=world.NOW)
    assert not wakes.is_fresh(world.NOW + moment, now=world.NOW)


def test_a_wake_vanishes_with_its_transaction() -> None:
    session_id = world.session()

    with pytest.raises(OSError), session_transaction(session_id, now=world.NOW) as tx:
        wakes.enqueue(tx)
        raise OSError

    assert world.wakes() == []
    assert world.row(session_id).wake_enqueued_at is None
