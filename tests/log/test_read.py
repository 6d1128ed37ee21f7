"""Reading a log: pages in order, without a gap."""

import pytest

from schema import codec
from schema.events import SessionUpdated
from sessions_app import identity, log
from sessions_app.log import session_transaction
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def lengthened(session_id: str, *, by: int) -> None:
    with session_transaction(session_id, now=world.NOW) as tx:
        for number in range(by):
            tx.append(SessionUpdated(title=f"{number}"))


def test_a_page_begins_after_the_given_seq_and_ends_at_its_limit() -> None:
    session_id = world.session()
    lengthened(session_id, by=9)
    world.prompt(world.session())

    assert [event.seq for event in log.events_after(session_id, after=3, limit=4)] == [4, 5, 6, 7]
    assert [event.seq for event in log.events_after(session_id, after=7, limit=4)] == [8, 9, 10]
    assert log.events_after(session_id, after=10, limit=4) == []


def test_what_is_committed_between_two_pages_is_in_the_later_one() -> None:
    session_id = world.session()
    lengthened(session_id, by=2)
    first = log.events_after(session_id, limit=3)

    lengthened(session_id, by=1)

    assert [event.seq for event in log.events_after(session_id, after=first[-1].seq)] == [4]


def test_the_head_is_the_newest_seq_and_a_session_that_is_not_there_has_none() -> None:
    session_id = world.session()
    lengthened(session_id, by=2)

    assert log.head_seq(session_id) == 3
    assert log.head_seq(identity.new_session_id()) is None
    assert log.events_after(identity.new_session_id()) == []


def test_a_stored_event_reads_back_as_it_was_written() -> None:
    session_id = world.session()
    lengthened(session_id, by=1)

    stored = log.events_after(session_id, after=1)[0]

    assert stored.decode() == SessionUpdated(title="0")
    assert stored.to_json() == {
        "seq": 2,
        "type": "session.updated",
        "version": 1,
        "time": "2031-05-04T12:00:00Z",
        "data": {"title": "0"},
    }


def test_a_stored_event_of_another_version_of_the_product_is_refused_by_name() -> None:
    session_id = world.session()
    stored = log.events_after(session_id)[0]

    with pytest.raises(codec.UnknownEventVersion, match=r"session\.created"):
        type(stored)(**(vars(stored) | {"version": 99})).decode()
