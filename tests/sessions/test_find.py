"""Finding: what belongs to a user, and never a row of another."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schema.events import AttemptPrepared, StepStarted, TextStarted, ToolInputStarted
from schema.problems import SessionNotFound
from sessions_app import identity, inbox, sessions
from sessions_app.models import Session
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def answering(user_id: int) -> str:
    """A session in the middle of an answer, with a part and a call."""
    held = world.owned(user_id=user_id)
    message, attempt, part = (
        make() for make in (identity.new_message_id, identity.new_attempt_id, identity.new_part_id)
    )
    with world.transaction(held) as tx:
        tx.append(StepStarted(message=message, agent="default", model="demo:scripted", step=1))
        tx.append(
            AttemptPrepared(
                attempt=attempt, message=message, purpose="step", ordinal=1, provider="demo", model="scripted",
                request_digest="0" * 64,
            )
        )  # fmt: skip
        tx.append(TextStarted(message=message, part=part, index=0))
        tx.append(ToolInputStarted(message=message, part=f"{part}-call", index=1, call_id="c", name="n"))
    return held.session_id


def test_a_session_is_found_by_its_user_and_by_nobody_else() -> None:
    owner, stranger = world.user(), world.user()
    session_id = world.session(user_id=owner)

    assert sessions.get(user_id=owner, session_id=session_id).pk == session_id
    for user_id, asked in ((stranger, session_id), (owner, identity.new_session_id())):
        with pytest.raises(SessionNotFound):
            sessions.get(user_id=user_id, session_id=asked)


def test_a_list_holds_the_users_own_sessions_newest_activity_first() -> None:
    owner, stranger = world.user(), world.user()
    first, second = world.session(user_id=owner, title="Tea"), world.session(user_id=owner, title="Coffee")
    archived = world.session(user_id=owner, title="Old tea")
    sessions.update(session_id=archived, now=world.NOW, archived=True)
    world.prompt(world.session(user_id=stranger, title="Tea of a stranger"))
    world.prompt(first, now=world.after(60))

    def found(**arguments: object) -> list[str]:
        return [row.pk for row in sessions.listed(user_id=owner, **arguments)]  # type: ignore[arg-type]

    assert found() == [first, second]
    assert found(query="TEA") == [first]
    assert found(query="%") == []
    assert found(archived=True) == [archived]


@pytest.mark.rows_of_its_own
def test_the_list_is_read_from_its_index() -> None:
    owner = world.user()
    Session.objects.bulk_create(
        Session(
            id=f"ses_of-a-long-list-{number}", user_id=owner, created_at=world.NOW, active_at=world.after(number),
            agent="default", model="demo:scripted",
        )
        for number in range(2000)
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")

    plan = sessions.listed(user_id=owner)[:50].explain()

    assert "session_list" in plan
    assert "TEMP B-TREE" not in plan


def test_prompts_are_found_by_their_state_in_the_order_of_admission() -> None:
    session_id = world.session()
    promoted = world.prompt(session_id)
    world.promote(world.take(session_id))
    withdrawn, first, second = (world.prompt(session_id, delivery="queue") for _ in range(3))
    inbox.withdraw(session_id=session_id, message_id=withdrawn, now=world.NOW)
    world.prompt(world.session())
    row = world.row(session_id)

    found = {
        state: [prompt.pk for prompt in sessions.prompts_of(row, state=state)]
        for state in ("pending", "promoted", "withdrawn", "all")
    }

    assert found == {
        "pending": [first, second],
        "promoted": [promoted],
        "withdrawn": [withdrawn],
        "all": [promoted, withdrawn, first, second],
    }


def test_a_transcript_of_any_length_takes_three_statements() -> None:
    session_id = answering(world.user())

    with CaptureQueriesContext(connection) as captured:
        messages = sessions.message_shapes(sessions.messages_of(world.row(session_id)))

    assert [message["type"] for message in messages] == ["user", "assistant"]
    assert len(captured) == 1 + 3


def test_attempts_and_calls_are_found_by_their_user_only() -> None:
    owner, stranger = world.user(), world.user()
    mine, also_mine = answering(owner), answering(owner)
    answering(stranger)

    for find in (sessions.attempts_of, sessions.calls_of):
        assert {row.session_id for row in find(user_id=owner)} == {mine, also_mine}
        assert {row.session_id for row in find(user_id=owner, session_id=mine)} == {mine}
        assert not find(user_id=stranger, session_id=mine).exists()
