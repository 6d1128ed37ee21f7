"""What the answer about an unknown attempt changes in the tables, and what it must not."""

from typing import Any

import pytest

from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptDispatched,
    AttemptIdentified,
    AttemptPrepared,
    AttemptResumed,
    AttemptSettled,
    AttemptUnknown,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
)
from sessions_app.log import Held, replay
from sessions_app.log.errors import ProjectionConflict
from sessions_app.models import MessagePart, ProviderAttempt, SessionMessage
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

OURS: dict[str, Any] = {"attempt": "att_1", "message": "msg_1"}
TOLD = AttemptSettled(
    **OURS, outcome="completed", usage=Usage(input_tokens=5, output_tokens=9), may_be_billed=True
)


def write(held: Held, *events: Any) -> None:
    with world.transaction(held) as tx:
        for event in events:
            tx.append(event)


@pytest.fixture
def lost() -> Held:
    """A step whose attempt is unknown, with some text and some usage."""
    held = world.owned()
    error = AttemptError(error_class="partial", reason="cut", message="Cut.")
    write(
        held,
        StepStarted(message="msg_1", agent="default", model="openai-responses:gpt", step=1),
        AttemptPrepared(**OURS, purpose="step", ordinal=1, provider="p", model="m", request_digest="d" * 64),
        AttemptDispatched(**OURS),
        AttemptIdentified(**OURS, provider_response_id="resp_1"),
        TextStarted(message="msg_1", part="prt_1", index=0),
        TextEnded(message="msg_1", part="prt_1", text="Hel"),
        AttemptUnknown(**OURS, error=error, usage=Usage(input_tokens=5, output_tokens=1)),
        StepFailed(message="msg_1", outcome="unknown", error=StepError(reason="cut", message="Cut.")),
    )
    return held


def test_the_name_of_a_response_is_kept_from_when_it_is_known(lost: Held) -> None:
    assert ProviderAttempt.objects.get().provider_response_id == "resp_1"


def test_an_attempt_that_is_settled_late_counts_once_and_is_unknown_no_more(lost: Held) -> None:
    write(lost, TOLD)

    attempt = ProviderAttempt.objects.get()
    row = world.row(lost.session_id)
    assert (attempt.state, attempt.unknown_at, attempt.decision) == ("settled", None, None)
    assert (row.input_tokens, row.output_tokens) == (5, 9)
    assert SessionMessage.objects.get(pk="msg_1").state == "unknown"
    assert replay.rebuild(lost.session_id, check=True) == []


@pytest.mark.parametrize("keeps_parts", [True, False])
def test_a_step_that_is_resumed_is_open_again(lost: Held, keeps_parts: bool) -> None:
    write(lost, AttemptResumed(**OURS, keeps_parts=keeps_parts))

    message = SessionMessage.objects.get(pk="msg_1")
    assert (message.state, message.completed_at, message.error, message.notice) == ("running", None, None, "")
    assert MessagePart.objects.exists() == keeps_parts
    assert world.row(lost.session_id).output_tokens == 0
    write(lost, TOLD)
    assert world.row(lost.session_id).output_tokens == 9
    assert replay.rebuild(lost.session_id, check=True) == []


def test_a_step_that_a_newer_one_followed_is_not_resumed(lost: Held) -> None:
    write(lost, StepStarted(message="msg_2", agent="default", model="openai-responses:gpt", step=2))

    with pytest.raises(ProjectionConflict):
        write(lost, AttemptResumed(**OURS, keeps_parts=False))

    assert SessionMessage.objects.get(pk="msg_1").state == "unknown"


def test_what_is_settled_is_settled_for_ever(lost: Held) -> None:
    write(lost, TOLD)

    for again in (TOLD, AttemptResumed(**OURS, keeps_parts=False)):
        with pytest.raises(ProjectionConflict):
            write(lost, again)
