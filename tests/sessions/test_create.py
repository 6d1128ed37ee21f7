"""Creating a session: one id, one session, of one user."""

from functools import partial
from typing import Any

import pytest

from schema.problems import InvalidId, InvalidValue, SessionIdUnavailable
from sessions_app import sessions
from sessions_app.models import Agent, Session, Tombstone
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)

ID = "ses_chosen-by-a-client"


def create(user_id: int, **arguments: Any) -> sessions.Creation:
    return sessions.create(user_id=user_id, now=world.NOW, **arguments)


def test_a_new_session_has_an_id_a_log_and_what_was_asked_for() -> None:
    Agent.objects.create(name="writer", system="Write.", model="demo:scripted")

    made = create(world.user(), title="A title", agent="writer", recovery_policy="ask")

    assert made.created
    stored = world.row(made.session.pk)
    assert (stored.title, stored.agent, stored.model, stored.recovery_policy) == (
        "A title", "writer", "demo:scripted", "ask",
    )  # fmt: skip
    assert (stored.head_seq, made.session.head_seq, stored.created_at) == (1, 1, world.NOW)
    assert world.event_types(stored.pk) == ["session.created"]


def test_two_sessions_without_an_id_are_two_sessions() -> None:
    user_id = world.user()

    assert create(user_id).session.pk != create(user_id).session.pk


def test_the_own_id_again_is_the_same_session_as_it_is_now_whatever_else_is_asked_for() -> None:
    user_id = world.user()
    create(user_id, session_id=ID, title="First")
    sessions.update(session_id=ID, now=world.NOW, title="Renamed")
    before = world.everything_of(ID)

    again = create(user_id, session_id=ID, title="Second", agent="no such agent", model="no such model")

    assert (again.created, again.session.title) == (False, "Renamed")
    assert world.everything_of(ID) == before


def test_the_id_of_another_user_is_unavailable_and_tells_nothing() -> None:
    owner, stranger = world.user("owner"), world.user("stranger")
    create(owner, session_id=ID, title="Private")
    before = world.everything_of(ID)

    with pytest.raises(SessionIdUnavailable) as refused:
        create(stranger, session_id=ID)

    assert "Private" not in refused.value.detail
    assert "owner" not in refused.value.detail
    assert world.everything_of(ID) == before


def test_the_id_of_a_deleted_session_is_unavailable_also_to_its_user() -> None:
    user_id = world.user()
    create(user_id, session_id=ID)
    sessions.delete(session_id=ID, now=world.NOW)

    with pytest.raises(SessionIdUnavailable):
        create(user_id, session_id=ID)

    assert not Session.objects.exists()
    assert Tombstone.objects.filter(pk=ID).exists()


@pytest.mark.parametrize(
    "session_id", ["", "ses_short", "msg_of-a-message", "ses_with space", "ses_abcdefgh\n"]
)
def test_an_id_that_no_client_may_choose_is_refused(session_id: str) -> None:
    with pytest.raises(InvalidId):
        create(world.user(), session_id=session_id)

    assert not Session.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"agent": "nobody"}, "agent"),
        ({"model": "without-a-provider"}, "model"),
        ({"model": "nobody:model"}, "model"),
        ({"model": f"openai:{'m' * 200}"}, "model"),
    ],
)
def test_a_session_that_could_never_run_is_refused(arguments: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        create(world.user(), **arguments)

    assert refused.value.field == field
    assert not Session.objects.exists()


def test_a_title_is_stored_clean_and_cut_to_its_length() -> None:
    made = create(world.user(), title="\0\ud83d\ude00" + "t" * 500)

    assert world.row(made.session.pk).title == "\U0001f600" + "t" * 199


@committing
def test_many_that_create_one_id_at_once_all_get_the_one_session() -> None:
    user_id = world.user()
    with racing.Racers(8) as racers:
        for number in racing.rounds(25, within=8):
            session_id = f"ses_created-at-once-{number}"

            made = racers.round(*[partial(create, user_id, session_id=session_id)] * 8)

            assert sorted(creation.created for creation in made) == [False] * 7 + [True]
            assert {creation.session.pk for creation in made} == {session_id}
            assert world.event_types(session_id) == ["session.created"]


@committing
def test_of_two_users_that_create_one_id_at_once_one_has_it() -> None:
    ann, bob = world.user(), world.user()
    with racing.Racers(2) as racers:
        for number in racing.rounds(25, within=8):
            session_id = f"ses_wanted-by-two-{number}"

            outcomes = racers.round(
                partial(create, ann, session_id=session_id), partial(create, bob, session_id=session_id)
            )

            owner = world.row(session_id).user_id
            assert sorted(type(outcome).__name__ for outcome in outcomes) == [
                "Creation",
                "SessionIdUnavailable",
            ]
            winner = next(outcome for outcome in outcomes if isinstance(outcome, sessions.Creation))
            assert winner.session.user_id == owner
