"""Replay: the log alone gives the projections back."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from schema import codec, events
from sessions_app import hooks, identity
from sessions_app.live import wakes
from sessions_app.log import LogIncomplete, SessionGone, listeners, projector, replay
from sessions_app.models import (
    MessagePart,
    PartCheckpoint,
    ProviderAttempt,
    Session,
    SessionEvent,
    SessionInput,
    SessionMessage,
    Worker,
)
from tests.log.stories import Story, stories
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

A_WHOLE_LIFE = [
    ("updates", 1), ("prompts", 3), ("prompts", 2), ("prompts", 1), ("withdraws", 2), ("takes", 0),
    ("prepares", 0), ("sends", 0), ("receives", 1), ("opens_a_part", 1), ("ends_a_part", 1),
    ("opens_a_part", 2), ("asks_for_approval", 1), ("answers", 1), ("enters", 1), ("fails_a_call", 0),
    ("decides_a_call", 1), ("opens_a_part", 0), ("ends_a_part", 0), ("ends_the_step", 0), ("promotes", 1),
    ("prepares", 0), ("retries", 1), ("sends", 0), ("receives", 0), ("opens_a_part", 0), ("ends_a_part", 0),
    ("ends_the_step", 2), ("updates", 2), ("stops", 0), ("prepares", 0), ("opens_a_part", 0),
]  # fmt: skip
"""Every kind of row, closed and open."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whom listeners, wakes and hooks were told of."""
    heard: list[str] = []
    monkeypatch.setattr(listeners, "_listeners", [lambda session_id, events: heard.append(session_id)])
    monkeypatch.setattr(wakes, "async_task", lambda task, session_id: heard.append(session_id))
    monkeypatch.setattr(hooks, "_orphan_found", [heard.append])
    return heard


def lived() -> Story:
    story = Story(user_id=world.user(), worker_id=world.worker().pk)
    story.play(A_WHOLE_LIFE)
    return story


def empty(session_id: str) -> None:
    """Lose the projections, as a damaged database would."""
    for table in (MessagePart, ProviderAttempt, SessionMessage, SessionInput):
        table._default_manager.filter(session_id=session_id).delete()
    Session.objects.filter(pk=session_id).update(title="lost", agent="lost", model="lost", input_tokens=-1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=stories)
def test_after_any_history_the_replayed_rows_equal_the_live_ones(
    db: None, moves: list[tuple[str, int]]
) -> None:
    story = Story(user_id=world.user(), worker_id=world.worker().pk)
    story.play(moves)
    before = world.everything_of(story.session_id)

    assert replay.rebuild(story.session_id, check=True) == []
    assert replay.rebuild(story.session_id, check=False) == []

    assert world.everything_of(story.session_id) == before


def test_rows_that_were_lost_come_back_and_nobody_hears_of_it(told: list[str]) -> None:
    story, neighbour = lived(), lived()
    before, neighbours = world.everything_of(story.session_id), world.everything_of(neighbour.session_id)
    workers = world.rows_of(Worker)
    told.clear()
    empty(story.session_id)

    assert replay.rebuild(story.session_id, check=False) != []

    assert world.everything_of(story.session_id) == before
    assert world.everything_of(neighbour.session_id) == neighbours
    assert world.rows_of(Worker) == workers
    assert told == []


def test_pending_prompts_come_back_pending_and_wake_nobody(told: list[str]) -> None:
    session_id = world.session()
    message_id = world.prompt(session_id)
    told.clear()
    empty(session_id)

    replay.rebuild(session_id, check=False)

    assert world.input_row(message_id).promoted_seq is None
    assert SessionMessage.objects.filter(session_id=session_id).count() == 0
    assert told == []


def test_the_text_so_far_of_an_open_part_survives_a_rebuild() -> None:
    story = lived()
    checkpoints = world.rows_of(PartCheckpoint)
    assert len(checkpoints) == 1

    replay.rebuild(story.session_id, check=False)

    assert world.rows_of(PartCheckpoint) == checkpoints


@pytest.mark.rows_of_its_own
def test_a_check_names_every_difference_and_changes_nothing() -> None:
    story = lived()
    session_id = story.session_id
    Session.objects.filter(pk=session_id).update(title="forged")
    message = SessionMessage.objects.filter(session_id=session_id, type="user").first()
    assert message is not None
    SessionMessage.objects.filter(pk=message.pk).update(text="forged")
    attempt = ProviderAttempt.objects.filter(session_id=session_id).first()
    assert attempt is not None
    ProviderAttempt.objects.filter(pk=attempt.pk).delete()
    extra = SessionInput.objects.create(
        id="msg_never-admitted", session_id=session_id, origin="user", text="", digest="", wake=True,
        delivery="steer", delivery_admitted="steer", created_at=world.NOW, admitted_seq=10_000,
    )  # fmt: skip
    before = world.everything_of(session_id)

    differences = replay.rebuild(session_id, check=True)

    assert differences == [
        f"Session {session_id}: title is 'forged', the log says 'Title 2'",
        f"SessionInput {extra.pk}: in the table, not in the log",
        f"SessionMessage {message.pk}: text is 'forged', the log says 'Text 2'",
        f"ProviderAttempt {attempt.pk}: in the log, not in the table",
    ]
    assert world.everything_of(session_id) == before


@pytest.mark.parametrize(
    ("damage", "refusal"),
    [
        ({"type": "session.renamed"}, codec.UnknownEventType),
        ({"version": 2}, codec.UnknownEventVersion),
        ({"data": {"title": 7}}, codec.MalformedEvent),
        ({"seq": 1_000}, LogIncomplete),
    ],
)
@pytest.mark.rows_of_its_own
def test_a_log_that_cannot_be_read_is_refused_and_nothing_changes(
    damage: dict[str, Any], refusal: type[Exception]
) -> None:
    story = lived()
    damaged = SessionEvent.objects.filter(session_id=story.session_id, type="session.updated").first()
    assert damaged is not None
    SessionEvent.objects.filter(pk=damaged.pk).update(**damage)
    before = world.everything_of(story.session_id)

    for check in (True, False):
        with pytest.raises(refusal):
            replay.rebuild(story.session_id, check=check)

    assert world.everything_of(story.session_id) == before


@pytest.mark.parametrize("which", ["a hole", "the end"])
@pytest.mark.rows_of_its_own
def test_a_log_with_a_hole_or_without_its_end_is_refused_by_the_missing_seq(which: str) -> None:
    story = lived()
    log = SessionEvent.objects.filter(session_id=story.session_id)
    missing = log.filter(type="session.updated").earliest("seq") if which == "a hole" else log.latest("seq")
    missing.delete()
    before = world.everything_of(story.session_id)

    with pytest.raises(LogIncomplete) as refused:
        replay.rebuild(story.session_id, check=False)

    assert refused.value.seq == missing.seq
    assert world.everything_of(story.session_id) == before


def test_a_session_that_is_not_there_is_gone() -> None:
    with pytest.raises(SessionGone):
        replay.rebuild(identity.new_session_id(), check=True)


def test_every_event_of_the_manifest_is_projected() -> None:
    assert projector.projected_events() == frozenset(events.MANIFEST)


def test_every_table_of_the_core_is_projected_operational_or_the_log_itself() -> None:
    """A new table has to say which of them it is."""
    tables = {
        relation.related_model for relation in Session._meta.related_objects if _is_of_the_core(relation)
    }

    assert tables - set(replay.OPERATIONAL) - replay.OPERATIONAL_TABLES == {SessionEvent}


def _is_of_the_core(relation: Any) -> bool:
    return bool(relation.related_model._meta.app_label == "sessions_app")
