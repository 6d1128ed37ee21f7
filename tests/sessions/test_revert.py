"""Going back in a transcript: staged, cleared, committed by the next prompt; what happened stays known."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from recovery import decisions
from schema.problems import MessageNotFound, PromptConflict, SessionBusy, Superseded
from sessions_app import history, inbox, sessions
from sessions_app.live import wakes
from sessions_app.log import SessionGone, replay
from sessions_app.models import ProviderAttempt, SessionInput, SessionMessage
from sessions_app.sessions import revert
from tests.recovery import scenes
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def conversation() -> tuple[str, list[str]]:
    """Two questions with their answers, and the ids of the four messages."""
    session_id = world.session()
    made = []
    for number in range(2):
        made.append(scenes.say(session_id, f"Question {number}", now=world.after(number)))
        made.append(scenes.answer(session_id, f"Answer {number}", now=world.after(number)))
    return session_id, made


def visible(session_id: str) -> list[str]:
    return [message.pk for message in sessions.messages_of(world.row(session_id))]


def stage(session_id: str, message_id: str) -> None:
    revert.stage(session_id=session_id, message_id=message_id, now=world.after(10))


def clear(session_id: str) -> bool:
    return revert.clear(session_id=session_id, now=world.after(11))


def consistent(session_id: str) -> bool:
    return replay.rebuild(session_id, check=True) == []


def test_a_staged_revert_hides_nothing_yet_and_is_told() -> None:
    session_id, messages = conversation()

    stage(session_id, messages[2])

    assert visible(session_id) == messages
    row = world.row(session_id)
    shape = sessions.session_shape(row, sessions.get_status(row.pk, now=world.NOW))
    assert shape["staged_revert"] == messages[2]
    assert world.event_types(session_id)[-1] == "revert.staged"
    assert world.wakes() == []


def test_a_second_stage_replaces_the_first_and_the_same_again_changes_nothing() -> None:
    session_id, messages = conversation()
    stage(session_id, messages[2])

    stage(session_id, messages[0])
    before = world.everything_of(session_id)
    stage(session_id, messages[0])

    assert world.row(session_id).staged_revert == messages[0]
    assert world.everything_of(session_id) == before


def test_the_next_prompt_hides_from_the_boundary_on_under_the_same_lock() -> None:
    session_id, messages = conversation()
    stage(session_id, messages[2])

    world.prompt(session_id, "Another question")

    assert visible(session_id) == messages[:2]
    assert [entry.text for entry in history.select(session_id) if entry.type == "user"] == ["Question 0"]
    assert world.event_types(session_id)[-2:] == ["prompt.admitted", "revert.committed"]
    row = world.row(session_id)
    assert (row.staged_revert, row.hold_seq) == ("", None)
    hidden = SessionMessage.objects.filter(session_id=session_id).exclude(reverted_seq=None)
    assert {message.reverted_seq for message in hidden} == {row.head_seq}
    assert world.wakes() == [session_id]
    # What it cost stays what it cost.
    assert ProviderAttempt.objects.filter(session_id=session_id).count() == 2
    assert consistent(session_id)


def test_a_cleared_revert_leaves_everything_as_it_was() -> None:
    session_id, messages = conversation()
    stage(session_id, messages[0])

    assert clear(session_id)
    before = world.everything_of(session_id)
    assert not clear(session_id)

    assert world.everything_of(session_id) == before
    world.prompt(session_id)
    assert visible(session_id) == messages
    assert "revert.committed" not in world.event_types(session_id)
    assert consistent(session_id)


def test_what_is_pending_waits_while_a_revert_is_staged_and_stays_pending_when_it_commits() -> None:
    session_id, messages = conversation()
    waiting = world.prompt(session_id, "Waits", delivery="queue")
    world.forget_wakes(session_id)

    stage(session_id, messages[2])

    assert not inbox.is_due(world.row(session_id), now=world.after(20))
    assert sessions.get_status(session_id, now=world.after(20)).state == "idle"
    assert not sessions.resume(session_id=session_id, now=world.after(20))
    assert not sessions.interrupt(session_id=session_id, now=world.after(20))
    newer = world.prompt(session_id, "Newer")
    assert [row.pk for row in inbox.promotable(world.row(session_id))] == [waiting, newer]


def test_what_waited_only_for_a_staged_revert_goes_on_when_it_is_cleared() -> None:
    session_id, messages = conversation()
    waiting = world.prompt(session_id, "Waits", delivery="queue")
    world.forget_wakes(session_id)
    stage(session_id, messages[2])
    assert world.wakes() == []

    clear(session_id)

    assert [row.pk for row in inbox.promotable(world.row(session_id))] == [waiting]
    assert world.wakes() == [session_id]


@pytest.mark.parametrize("reason", ["paused", "undecided"])
def test_an_older_hold_outlives_a_cleared_revert(reason: str) -> None:
    session_id, messages = conversation()
    world.prompt(session_id, "Waits")
    world.forget_wakes(session_id)
    world.change(session_id, hold_seq=world.row(session_id).head_seq, hold_reason=reason)
    stage(session_id, messages[2])

    clear(session_id)

    assert world.row(session_id).hold_reason == reason
    assert world.wakes() == []
    assert sessions.resume(session_id=session_id, now=world.after(20))


def test_a_prompt_that_only_waits_leaves_it_staged_until_it_wants_to_run() -> None:
    session_id, messages = conversation()
    stage(session_id, messages[2])

    prompt = world.prompt(session_id, "Later", wake=False)

    assert visible(session_id) == messages
    assert world.row(session_id).staged_revert == messages[2]
    world.prompt(session_id, "Later", message_id=prompt)
    assert visible(session_id) == messages[:2]


def test_a_prompt_that_is_refused_leaves_it_staged() -> None:
    session_id, messages = conversation()
    stage(session_id, messages[2])

    with pytest.raises(PromptConflict):
        world.prompt(session_id, "Other words", message_id=messages[0])

    assert world.row(session_id).staged_revert == messages[2]
    assert visible(session_id) == messages


def busy_owned(session_id: str) -> None:
    world.change(session_id, owner=world.worker())


def busy_owed(session_id: str) -> None:
    world.change(session_id, owed_at=world.after(100))


@pytest.mark.parametrize("act", [busy_owned, busy_owed, scenes.waiting_call, scenes.begin])
def test_a_session_that_is_not_at_rest_is_busy(act: Callable[[str], Any]) -> None:
    session_id, messages = conversation()
    act(session_id)
    before = world.everything_of(session_id)

    with pytest.raises(SessionBusy):
        stage(session_id, messages[0])
    with pytest.raises(SessionBusy):
        resend(session_id, messages[0])

    assert world.everything_of(session_id) == before


def test_only_visible_messages_of_the_session_are_boundaries() -> None:
    session_id, messages = conversation()
    other, others = conversation()
    pending = world.prompt(session_id, wake=False)
    stage(session_id, messages[2])
    world.prompt(session_id, "Else")

    for message_id in (others[0], pending, messages[3], "msg_0000000000000000"):
        with pytest.raises(MessageNotFound):
            stage(session_id, message_id)
    with pytest.raises(SessionGone):
        stage("ses_0000000000000000", messages[0])
    assert visible(other) == others


def test_a_hidden_call_still_guards_against_its_repetition_and_can_be_marked() -> None:
    session_id, messages = conversation()
    scenes.say(session_id, "Send it")
    call = scenes.unknown_call(session_id)
    stage(session_id, messages[2])
    world.prompt(session_id, "Send it again")
    world.change(session_id, owed_at=None)

    decided = decisions.decide_call(
        session_id=session_id, call_id=call, action="mark_not_done", by="ann", now=world.after(20)
    )

    assert decided.unknown_at is not None
    # Nothing that is hidden makes the model go on.
    assert world.row(session_id).owed_at is None


@pytest.mark.parametrize("commits", [False, True])
def test_a_hidden_attempt_is_not_tried_again(commits: bool) -> None:
    session_id, _ = conversation()
    question = scenes.say(session_id, "Third")
    attempt = scenes.unknown_attempt(session_id)
    stage(session_id, question)
    if commits:
        world.prompt(session_id, "Instead")

    with pytest.raises(Superseded):
        decisions.decide_attempt(
            session_id=session_id, attempt_id=attempt, action="retry", by="ann", now=world.after(20)
        )
    decisions.decide_attempt(
        session_id=session_id, attempt_id=attempt, action="abandon", by="ann", now=world.after(20)
    )
    assert not SessionInput.objects.filter(session_id=session_id, origin="retry").exists()


def test_a_decision_lets_nothing_go_while_a_revert_is_staged() -> None:
    session_id, messages = conversation()
    scenes.say(session_id, "Third")
    attempt = scenes.unknown_attempt(session_id)
    world.prompt(session_id, "Waits")
    world.forget_wakes(session_id)
    world.change(session_id, hold_seq=world.row(session_id).head_seq, hold_reason="undecided")
    stage(session_id, messages[0])

    decisions.decide_attempt(
        session_id=session_id, attempt_id=attempt, action="abandon", by="ann", now=world.after(20)
    )

    assert world.wakes() == []
    assert not inbox.is_due(world.row(session_id), now=world.after(21))
    clear(session_id)
    assert world.wakes() == [session_id]


def resend(session_id: str, message_id: str, text: str = "Better", new: str = "msg_new-0000000") -> Any:
    return sessions.edit_and_resend(
        session_id=session_id, message_id=message_id, text=text, new_message_id=new, now=world.after(30)
    )


def test_edit_and_resend_goes_back_and_admits_in_one_step() -> None:
    session_id, messages = conversation()

    admission = resend(session_id, messages[2])

    assert admission.created
    assert visible(session_id) == messages[:2]
    assert world.event_types(session_id)[-3:] == ["revert.staged", "prompt.admitted", "revert.committed"]
    assert [row.pk for row in inbox.promotable(world.row(session_id))] == ["msg_new-0000000"]
    assert world.row(session_id).staged_revert == ""
    assert consistent(session_id)


def test_edit_and_resend_twice_is_done_once() -> None:
    session_id, messages = conversation()
    first = resend(session_id, messages[2])
    before = world.everything_of(session_id)

    again = resend(session_id, messages[2])

    assert (again.created, again.prompt.pk) == (False, first.prompt.pk)
    assert world.everything_of(session_id) == before
    with pytest.raises(PromptConflict):
        resend(session_id, messages[0], "Other words")
    assert visible(session_id) == messages[:2]


def test_a_refused_edit_changes_nothing() -> None:
    session_id, messages = conversation()
    before = world.everything_of(session_id)

    with pytest.raises(MessageNotFound):
        resend(session_id, "msg_0000000000000000")
    with pytest.raises(PromptConflict):
        resend(session_id, messages[2], new=messages[0])

    assert world.everything_of(session_id) == before


@pytest.mark.django_db(transaction=True)
def test_an_edit_sent_many_times_at_once_is_done_once() -> None:
    session_id, messages = conversation()

    answers = racing.together([lambda: resend(session_id, messages[2]) for _ in range(4)])

    assert sorted(answer.created for answer in answers) == [False, False, False, True]
    assert visible(session_id) == messages[:2]
    assert world.event_types(session_id).count("revert.committed") == 1
    assert consistent(session_id)


@pytest.mark.django_db(transaction=True)
def test_stage_clear_and_prompt_at_once_end_in_one_of_their_orders() -> None:
    for _ in racing.rounds(6, within=20):
        session_id, messages = conversation()
        stage(session_id, messages[2])

        racing.together(
            [
                partial(clear, session_id),
                partial(world.prompt, session_id, "Next", now=world.after(12)),
            ]
        )

        committed = "revert.committed" in world.event_types(session_id)
        assert visible(session_id) == (messages[:2] if committed else messages)
        assert world.row(session_id).staged_revert == ""
        assert wakes.is_fresh(world.row(session_id).wake_enqueued_at, now=world.after(13))
        assert consistent(session_id)
