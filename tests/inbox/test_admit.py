"""Admission: one prompt, one record, however often and by whomever it is sent."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schema.events import AgentSwitched, SessionPaused, StepStarted
from schema.inputs import content_digest
from schema.problems import PromptConflict
from sessions_app import identity, inbox, sessions
from sessions_app.log import SessionGone, session_transaction
from sessions_app.models import Session, SessionInput, SessionMessage, Tombstone
from tests.inbox.clients import PROMPTS
from tests.support import children, racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

committing = pytest.mark.django_db(transaction=True)

PROMPT = "msg_sent-by-a-client"


def send(session_id: str, **changed: Any) -> inbox.Admission:
    described: dict[str, Any] = {
        "message_id": PROMPT, "text": "Hello", "delivery": "steer", "wake": True, "now": world.NOW,
    }  # fmt: skip
    return inbox.admit(session_id=session_id, **(described | changed))


# The first time


def test_an_admitted_prompt_is_in_the_inbox_and_not_in_the_transcript() -> None:
    session_id = world.session()

    admission = send(session_id)

    assert admission.created
    stored = world.input_row(PROMPT)
    assert (stored.session_id, stored.text, stored.delivery, stored.origin) == (
        session_id,
        "Hello",
        "steer",
        "user",
    )
    assert (stored.admitted_seq, stored.promoted_seq, stored.withdrawn_seq) == (2, None, None)
    assert stored.digest == content_digest("Hello")
    assert not SessionMessage.objects.filter(session_id=session_id).exists()
    assert world.event_types(session_id) == ["session.created", "prompt.admitted"]


def test_what_admission_returns_is_what_is_stored() -> None:
    admission = send(world.session(), delivery="queue")

    stored = world.input_row(PROMPT)
    assert {
        field.attname: getattr(admission.prompt, field.attname)
        for field in SessionInput._meta.concrete_fields
    } == {field.attname: getattr(stored, field.attname) for field in SessionInput._meta.concrete_fields}


def test_a_prompt_moves_only_its_own_session() -> None:
    session_id, neighbour = world.session(), world.session()
    world.prompt(neighbour)
    before = world.everything_of(neighbour)

    send(session_id)

    assert world.everything_of(neighbour) == before


def test_the_same_text_under_two_ids_is_two_prompts() -> None:
    session_id = world.session()

    ids = [world.prompt(session_id, "Again") for _ in range(2)]

    assert list(world.pending(session_id).values_list("pk", flat=True)) == ids


def test_a_prompt_for_a_session_that_is_gone_is_refused() -> None:
    with pytest.raises(SessionGone):
        send(identity.new_session_id())

    assert not SessionInput.objects.exists()
    assert world.wakes() == []


@committing
def test_an_admission_is_one_transaction_of_six_statements() -> None:
    session_id = world.session()
    send(session_id, message_id="msg_warms-caches-up")
    world.forget_wakes(session_id)

    with CaptureQueriesContext(connection) as captured:
        send(session_id)

    assert statements(captured) == [
        "BEGIN",
        "SELECT sessions_app_session",
        "SELECT sessions_app_sessioninput",
        "INSERT sessions_app_sessioninput",
        "INSERT django_q_ormq",
        "INSERT sessions_app_sessionevent",
        "UPDATE sessions_app_session",
        "COMMIT",
    ]


@committing
def test_an_exact_retry_wakes_again_and_writes_nothing_else() -> None:
    session_id = world.session()
    send(session_id)

    with CaptureQueriesContext(connection) as captured:
        send(session_id)

    assert statements(captured) == [
        "BEGIN",
        "SELECT sessions_app_session",
        "SELECT sessions_app_sessioninput",
        "SELECT sessions_app_sessioninput",
        "INSERT django_q_ormq",
        "UPDATE sessions_app_session",
        "COMMIT",
    ]


def statements(captured: CaptureQueriesContext) -> list[str]:
    """Each statement by its verb and its first table."""
    found = []
    for query in captured.captured_queries:
        words = query["sql"].replace('"', "").lstrip("(").split()
        tables = [word.split(".")[0] for word in words if word.startswith(("sessions_app_", "django_q_"))]
        found.append(" ".join([words[0], *tables[:1]]))
    return found


# The same again


def test_an_exact_retry_returns_the_original_record_and_stores_nothing_but_its_wake() -> None:
    session_id = world.session()
    first = send(session_id)
    before = world.everything_of(session_id)

    again = send(session_id, now=world.after(60))

    assert not again.created
    assert again.prompt == first.prompt
    assert (again.prompt.admitted_seq, again.prompt.created_at) == (2, world.NOW)
    assert world.wakes() == [session_id] * 2
    assert world.row(session_id).wake_enqueued_at == world.after(60)
    Session.objects.filter(pk=session_id).update(wake_enqueued_at=world.NOW)
    assert world.everything_of(session_id) == before


def test_a_retry_of_a_promoted_prompt_returns_its_state_and_wakes_nobody() -> None:
    session_id = world.session()
    send(session_id)
    world.promote(world.take(session_id))
    world.forget_wakes(session_id)

    again = send(session_id, now=world.after(3600))

    assert again.prompt.promoted_seq == 3
    assert world.wakes() == []
    assert world.row(session_id).wake_enqueued_at is None


def test_a_retry_of_a_withdrawn_prompt_returns_its_state_and_does_not_bring_it_back() -> None:
    session_id = world.session()
    send(session_id)
    inbox.withdraw(session_id=session_id, message_id=PROMPT, now=world.NOW)
    world.forget_wakes(session_id)

    again = send(session_id, now=world.after(3600))

    assert (again.created, again.prompt.withdrawn_seq) == (False, 3)
    assert world.wakes() == []
    assert not world.pending(session_id).exists()


def test_a_retry_is_compared_with_the_delivery_it_was_admitted_with() -> None:
    session_id = world.session()
    send(session_id)
    inbox.change_delivery(session_id=session_id, message_id=PROMPT, delivery="queue", now=world.NOW)

    assert send(session_id, delivery="steer").prompt.delivery == "queue"
    with pytest.raises(PromptConflict):
        send(session_id, delivery="queue")


# The same id for something else


def test_a_used_id_is_refused_for_another_text_delivery_or_session() -> None:
    session_id, own_other, strangers = world.session(), world.session(), world.session()
    send(session_id)
    before = [world.everything_of(each) for each in (session_id, own_other, strangers)]

    attempts: list[Callable[[], object]] = [
        partial(send, session_id, text="Hello!"),
        partial(send, session_id, delivery="queue"),
        partial(send, own_other),
        partial(send, strangers, text="Something else"),
    ]
    for attempt in attempts:
        with pytest.raises(PromptConflict) as refused:
            attempt()
        assert refused.value.message_id == PROMPT
        assert session_id not in refused.value.detail

    assert [world.everything_of(each) for each in (session_id, own_other, strangers)] == before
    assert len(world.wakes()) == 1


@pytest.mark.parametrize("state", ["promoted", "withdrawn"])
def test_an_id_is_never_freed_by_what_became_of_its_prompt(state: str) -> None:
    session_id = world.session()
    send(session_id)
    if state == "promoted":
        world.promote(world.take(session_id))
    else:
        inbox.withdraw(session_id=session_id, message_id=PROMPT, now=world.NOW)

    for changed in ({"text": "Another"}, {"delivery": "queue"}):
        with pytest.raises(PromptConflict):
            send(session_id, **changed)
    with pytest.raises(PromptConflict):
        send(world.session())


def test_the_id_of_an_answer_or_of_a_switch_is_refused() -> None:
    held = world.owned()
    with world.transaction(held) as tx:
        tx.append(StepStarted(message="msg_an-answer", agent="default", model="demo:scripted", step=1))
        tx.append(AgentSwitched(message="msg_a-switch", agent="other"))
    before = world.everything_of(held.session_id)

    for taken in ("msg_an-answer", "msg_a-switch"):
        with pytest.raises(PromptConflict):
            send(held.session_id, message_id=taken)

    assert world.everything_of(held.session_id) == before


def test_the_ids_of_a_deleted_session_stay_taken() -> None:
    held = world.owned()
    pending = world.prompt(held.session_id)
    with world.transaction(held) as tx:
        tx.append(StepStarted(message="msg_an-answer", agent="default", model="demo:scripted", step=1))
    sessions.delete(session_id=held.session_id, now=world.NOW)
    session_id = world.session()

    for taken in (pending, "msg_an-answer"):
        assert Tombstone.objects.filter(pk=taken).exists()
        with pytest.raises(PromptConflict):
            send(session_id, message_id=taken)

    assert not world.pending(session_id).exists()


def test_an_id_whose_session_is_deleted_at_this_moment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = world.session()
    monkeypatch.setattr("sessions_app.inbox.known_ids.kinds_of", lambda message_id: {"input"})

    with pytest.raises(PromptConflict):
        send(session_id)

    assert not world.pending(session_id).exists()


# Wakes


def test_a_prompt_and_its_wake_commit_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = world.session()

    def fail(self: object) -> None:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr("sessions_app.log.transaction.SessionTransaction.flush", fail)
        with pytest.raises(OSError):
            send(session_id)
    assert world.wakes() == []
    assert not world.pending(session_id).exists()

    send(session_id)

    assert world.wakes() == [session_id]
    assert world.row(session_id).wake_enqueued_at == world.NOW


def test_admit_only_stores_the_prompt_and_wakes_nobody() -> None:
    session_id = world.session()

    admission = send(session_id, wake=False)

    assert not admission.prompt.wake
    assert world.wakes() == []
    assert not inbox.is_due(world.row(session_id), now=world.after(10**6))


def test_a_retry_that_wants_a_wake_arms_an_admitted_only_prompt_for_good() -> None:
    session_id = world.session()
    first = send(session_id, wake=False)

    again = send(session_id, wake=True)

    assert (again.created, again.prompt.admitted_seq) == (False, first.prompt.admitted_seq)
    assert world.wakes() == [session_id]
    assert world.input_row(PROMPT).wake
    assert inbox.is_due(world.row(session_id), now=world.NOW)


def test_a_retry_that_only_admits_does_not_disarm_a_prompt() -> None:
    session_id = world.session()
    send(session_id)

    send(session_id, wake=False)

    assert world.input_row(PROMPT).wake


def test_a_retry_arms_a_wake_that_was_lost() -> None:
    session_id = world.session()
    send(session_id)
    world.forget_wakes(session_id)

    send(session_id)

    assert world.wakes() == [session_id]


# What holds a session back


def held_back(*, reason: str = "paused") -> tuple[str, str]:
    session_id = world.session()
    waiting = world.prompt(session_id)
    head = world.row(session_id).head_seq
    world.change(session_id, hold_seq=head, hold_reason=reason)
    world.forget_wakes(session_id)
    return session_id, waiting


def test_a_newer_prompt_lifts_a_pause_and_takes_what_waited_along() -> None:
    session_id, waiting = held_back()

    send(session_id)

    session = world.row(session_id)
    assert (session.hold_seq, session.hold_reason) == (None, "")
    assert world.event_types(session_id)[-2:] == ["prompt.admitted", "session.unpaused"]
    assert [row.pk for row in inbox.promotable(session)] == [waiting, PROMPT]
    assert world.wakes() == [session_id]


def test_a_newer_prompt_goes_past_an_undecided_outcome_without_a_word_of_a_pause() -> None:
    session_id, _ = held_back(reason="undecided")

    send(session_id)

    assert world.row(session_id).hold_seq is None
    assert "session.unpaused" not in world.event_types(session_id)


@pytest.mark.parametrize("changed", [{"wake": False}, {"origin": "recovery"}, {"origin": "retry"}])
def test_what_no_person_wants_run_lifts_no_pause(changed: dict[str, Any]) -> None:
    session_id, waiting = held_back()

    send(session_id, **changed)

    session = world.row(session_id)
    assert session.hold_reason == "paused"
    assert waiting not in [row.pk for row in inbox.promotable(session)]


def test_an_exact_retry_of_what_waits_is_no_newer_prompt() -> None:
    session_id = world.session()
    send(session_id)
    with session_transaction(session_id, now=world.NOW) as tx:
        inbox.pause(tx, up_to=tx.head_seq)

    send(session_id)

    assert world.row(session_id).hold_reason == "paused"


def test_a_persons_prompt_lets_a_parked_session_run_again() -> None:
    session_id = world.session()
    world.change(session_id, parked=True)
    send(session_id, message_id="msg_admitted-only", wake=False)
    send(session_id, message_id="msg_of-the-system", origin="system")
    assert world.row(session_id).parked

    send(session_id)

    assert not world.row(session_id).parked


def test_a_pause_is_an_event_of_its_own() -> None:
    session_id = world.session()
    with session_transaction(session_id, now=world.NOW) as tx:
        inbox.pause(tx, up_to=tx.head_seq, by="recovery")

    assert tx.events[-1].decode() == SessionPaused(reason="recovery")


# At once


@committing
def test_twenty_clients_that_send_the_same_prompt_at_once_make_one_record() -> None:
    session_id = world.session()
    with racing.Racers(20) as racers:
        for number in racing.rounds(50, within=15):
            world.forget_wakes(session_id)
            message_id = f"msg_twenty-at-once-{number}"

            admissions = racers.round(*[partial(send, session_id, message_id=message_id)] * 20)

            assert sorted(admission.created for admission in admissions) == [False] * 19 + [True]
            assert len({admission.prompt.admitted_seq for admission in admissions}) == 1
            assert set(world.wakes()) == {session_id}
    rows = SessionInput.objects.filter(session_id=session_id).count()
    assert world.seqs(session_id) == list(range(1, rows + 2))


@committing
def test_of_twenty_texts_under_one_id_sent_at_once_one_is_admitted_and_the_others_refused() -> None:
    session_id = world.session()
    with racing.Racers(20) as racers:
        for number in racing.rounds(50, within=15):
            message_id = f"msg_one-of-twenty-{number}"

            outcomes = racers.round(
                *[partial(send, session_id, message_id=message_id, text=f"Text {each}") for each in range(20)]
            )

            admitted = [outcome for outcome in outcomes if isinstance(outcome, inbox.Admission)]
            assert [admission.created for admission in admitted] == [True]
            assert [type(outcome) for outcome in outcomes].count(PromptConflict) == 19
            assert world.input_row(message_id).text == admitted[0].prompt.text


@committing
def test_of_many_sessions_that_use_one_id_at_once_one_has_it() -> None:
    ids = [world.session() for _ in range(8)]
    with racing.Racers(8) as racers:
        for number in racing.rounds(30, within=8):
            message_id = f"msg_wanted-by-many-{number}"
            heads = dict(Session.objects.values_list("pk", "head_seq"))

            outcomes = racers.round(*[partial(send, each, message_id=message_id) for each in ids])

            winners = [outcome for outcome in outcomes if isinstance(outcome, inbox.Admission)]
            assert len(winners) == 1
            assert [type(outcome) for outcome in outcomes].count(PromptConflict) == 7
            heads[winners[0].prompt.session_id] += 1
            assert dict(Session.objects.values_list("pk", "head_seq")) == heads


@committing
def test_processes_that_send_the_same_prompts_at_once_make_one_record_of_each() -> None:
    session_id = world.session()
    clients = [children.start("tests.inbox.clients", "send_often", session_id) for _ in range(4)]

    created = [client.communicate(timeout=60)[0].split() for client in clients]

    assert [client.returncode for client in clients] == [0] * 4
    assert sorted(number for numbers in created for number in numbers) == sorted(map(str, range(PROMPTS)))
    assert world.seqs(session_id) == list(range(1, PROMPTS + 2))
