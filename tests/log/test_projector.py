"""The projector: rows move forward only, and only as their event says."""

from typing import Any

import pytest

from schema.attempts import AttemptError, StepError, Usage
from schema.events import (
    AttemptDispatched,
    AttemptFirstOutput,
    AttemptPrepared,
    AttemptResponseStarted,
    AttemptSettled,
    AttemptUnknown,
    EventData,
    PromptDeliveryChanged,
    PromptPromoted,
    PromptWithdrawn,
    ReasoningStarted,
    RetryScheduled,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolApprovalDecided,
    ToolApprovalRequested,
    ToolCalled,
    ToolDecided,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolSucceeded,
)
from sessions_app.log import Held, ProjectionConflict
from sessions_app.models import MessagePart, ProviderAttempt, SessionMessage
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

OLD, NEW = "msg_older-step", "msg_newer-step"
PART, CALL, ATTEMPT = "prt_text", "prt_call", "att_one"


def write(held: Held, *events: EventData) -> None:
    with world.transaction(held) as tx:
        for event in events:
            tx.append(event)


def refused(held: Held, event: EventData) -> bool:
    """Whether the event was refused, and everything stayed as it was."""
    before = world.everything_of(held.session_id)
    try:
        write(held, event)
    except ProjectionConflict:
        return world.everything_of(held.session_id) == before
    return False


def started(message: str = NEW) -> StepStarted:
    return StepStarted(message=message, agent="default", model="demo:scripted", step=1)


def prepared(message: str | None = NEW, **changed: Any) -> AttemptPrepared:
    described: dict[str, Any] = {
        "attempt": ATTEMPT, "message": message, "purpose": "step", "ordinal": 1, "provider": "demo",
        "model": "scripted", "request_digest": "0" * 64,
    }  # fmt: skip
    return AttemptPrepared(**(described | changed))


def settled(outcome: Any = "completed", **changed: Any) -> AttemptSettled:
    return AttemptSettled(attempt=ATTEMPT, message=NEW, outcome=outcome, may_be_billed=True, **changed)


def unknown() -> AttemptUnknown:
    error = AttemptError(error_class="partial", reason="cut", message="Cut.")
    return AttemptUnknown(attempt=ATTEMPT, message=NEW, error=error)


def failed(message: str = NEW) -> StepFailed:
    return StepFailed(message=message, outcome="failed", error=StepError(reason="cut", message="Cut."))


def called(part: str = CALL) -> ToolCalled:
    return ToolCalled(message=NEW, part=part, input={}, input_digest="1" * 64, effect="side_effect")


def asked() -> ToolApprovalRequested:
    return ToolApprovalRequested(
        message=NEW, part=CALL, input={}, input_digest="1" * 64, effect="side_effect", because="agent"
    )


def answered(action: Any) -> ToolApprovalDecided:
    return ToolApprovalDecided(message=NEW, part=CALL, action=action, by="ann")


def begun_call() -> tuple[EventData, ...]:
    return (
        started(),
        ToolInputStarted(message=NEW, part=CALL, index=0, call_id="c1", name="send_mail"),
        ToolInputEnded(message=NEW, part=CALL, raw="{}"),
    )


def decided() -> ToolDecided:
    return ToolDecided(message=NEW, part=CALL, action="mark_done", by="ann", policy=False)


# Prompts


def test_a_promoted_prompt_is_a_message_with_its_id_its_text_and_the_time_it_was_sent() -> None:
    session_id = world.session()
    message_id = world.prompt(session_id, "Hello there", now=world.after(5))
    held = world.take(session_id, now=world.after(6))

    world.promote(held, now=world.after(60))

    message = SessionMessage.objects.get(pk=message_id)
    assert (message.type, message.text, message.origin) == ("user", "Hello there", "user")
    assert message.created_at == world.after(5)
    assert world.input_row(message_id).promoted_seq == message.seq


def test_what_was_promoted_or_withdrawn_moves_no_more() -> None:
    session_id = world.session()
    kept, taken_back = world.prompt(session_id), world.prompt(session_id, delivery="queue")
    held = world.take(session_id)
    write(held, PromptPromoted(message=kept), PromptWithdrawn(message=taken_back))

    for message in (kept, taken_back):
        assert refused(held, PromptPromoted(message=message))
        assert refused(held, PromptWithdrawn(message=message))
        assert refused(held, PromptDeliveryChanged(message=message, delivery="queue"))


def test_a_prompt_of_another_session_is_out_of_reach() -> None:
    held, other = world.owned(), world.session()
    message_id = world.prompt(other)
    before = world.everything_of(other)

    assert refused(held, PromptPromoted(message=message_id))
    assert refused(held, PromptWithdrawn(message=message_id))
    assert world.everything_of(other) == before


# Steps


def test_a_newer_step_supersedes_the_older_one_which_can_only_be_closed() -> None:
    held = world.owned()
    write(held, started(OLD), TextStarted(message=OLD, part=PART, index=0), started(NEW))

    assert refused(held, TextStarted(message=OLD, part="prt_late", index=1))
    assert refused(held, ReasoningStarted(message=OLD, part="prt_late", index=1))
    assert refused(held, ToolInputStarted(message=OLD, part="prt_late", index=1, call_id="c", name="n"))
    assert refused(held, prepared(OLD))

    write(held, TextEnded(message=OLD, part=PART, text="So far"), failed(OLD))
    write(held, TextStarted(message=NEW, part="prt_new", index=0), prepared(NEW))
    assert SessionMessage.objects.get(pk=OLD).state == "failed"
    assert list(MessagePart.objects.filter(message_id=OLD).values_list("text", flat=True)) == ["So far"]


def test_a_message_that_ended_takes_no_part_no_attempt_and_no_second_end() -> None:
    held = world.owned()
    write(held, started(), StepEnded(message=NEW, finish="stop"))

    late: tuple[EventData, ...] = (
        TextStarted(message=NEW, part=PART, index=0),
        prepared(NEW),
        StepEnded(message=NEW, finish="stop"),
        failed(),
        RetryScheduled(message=NEW, attempt=2, at="2031-05-04T12:00:09Z", reason="network"),
    )
    assert [refused(held, event) for event in late] == [True] * len(late)


def test_a_message_of_another_session_takes_nothing() -> None:
    held, other = world.owned(), world.owned()
    write(other, started(OLD), TextStarted(message=OLD, part=PART, index=0))
    before = world.everything_of(other.session_id)

    strange: tuple[EventData, ...] = (
        TextStarted(message=OLD, part="prt_late", index=1),
        TextEnded(message=OLD, part=PART, text="forged"),
        StepEnded(message=OLD, finish="stop"),
        prepared(OLD),
    )

    assert [refused(held, event) for event in strange] == [True] * len(strange)
    assert world.everything_of(other.session_id) == before


def test_a_part_ends_once_with_its_whole_text() -> None:
    held = world.owned()
    write(held, started(), TextStarted(message=NEW, part=PART, index=0))

    write(held, TextEnded(message=NEW, part=PART, text="All of it"))

    assert refused(held, TextEnded(message=NEW, part=PART, text="More"))
    assert MessagePart.objects.get(pk=PART).text == "All of it"


# Attempts


@pytest.mark.parametrize(
    ("before", "too_early"),
    [
        ((prepared(),), (AttemptResponseStarted(attempt=ATTEMPT, status=200), AttemptFirstOutput(attempt=ATTEMPT), unknown())),
        ((prepared(), AttemptDispatched(attempt=ATTEMPT)), (AttemptDispatched(attempt=ATTEMPT),)),
        (
            (prepared(), AttemptDispatched(attempt=ATTEMPT), AttemptFirstOutput(attempt=ATTEMPT)),
            (AttemptDispatched(attempt=ATTEMPT), AttemptFirstOutput(attempt=ATTEMPT)),
        ),
        ((prepared(), settled("not_sent")), (AttemptDispatched(attempt=ATTEMPT), settled(), unknown())),
        (
            (prepared(), AttemptDispatched(attempt=ATTEMPT), unknown()),
            (AttemptDispatched(attempt=ATTEMPT), AttemptFirstOutput(attempt=ATTEMPT), unknown()),
        ),
    ],
)  # fmt: skip
def test_an_attempt_moves_forward_only(
    before: tuple[EventData, ...], too_early: tuple[EventData, ...]
) -> None:
    held = world.owned()
    write(held, started(), *before)

    assert [refused(held, event) for event in too_early] == [True] * len(too_early)


def test_an_attempt_keeps_the_time_of_each_fact_and_adds_its_usage_to_the_session_once() -> None:
    held = world.owned()
    facts: tuple[EventData, ...] = (
        prepared(),
        AttemptDispatched(attempt=ATTEMPT),
        AttemptResponseStarted(attempt=ATTEMPT, status=200, provider_request_id="req"),
        AttemptFirstOutput(attempt=ATTEMPT, provider_response_id="resp"),
        settled(finish="stop", usage=Usage(input_tokens=3, output_tokens=4)),
    )
    write(held, started())
    for second, fact in enumerate(facts):
        with world.transaction(held, now=world.after(second)) as tx:
            tx.append(fact)

    attempt = ProviderAttempt.objects.get(pk=ATTEMPT)
    times = (
        attempt.prepared_at, attempt.dispatched_at, attempt.headers_at, attempt.first_output_at, attempt.settled_at
    )  # fmt: skip
    assert times == tuple(world.after(second) for second in range(5))
    assert (attempt.state, attempt.outcome, attempt.finish) == ("settled", "completed", "stop")
    assert (attempt.provider_request_id, attempt.provider_response_id) == ("req", "resp")
    session = world.row(held.session_id)
    assert (session.input_tokens, session.output_tokens) == (3, 4)


def test_an_attempt_for_something_else_than_a_step_needs_no_message() -> None:
    held = world.owned()

    write(held, prepared(None, purpose="title"))

    assert ProviderAttempt.objects.get(pk=ATTEMPT).message_id is None


def test_names_and_ids_longer_than_their_columns_stop_no_step() -> None:
    held = world.owned()
    write(
        held,
        started(),
        prepared(),
        AttemptDispatched(attempt=ATTEMPT),
        AttemptResponseStarted(attempt=ATTEMPT, status=200, provider_request_id="r" * 5000),
        AttemptFirstOutput(attempt=ATTEMPT, provider_response_id="p" * 5000),
        ToolInputStarted(message=NEW, part=CALL, index=0, call_id="c" * 5000, name="n" * 5000),
        settled(provider_response_id="p" * 5000),
    )

    assert ProviderAttempt.objects.get(pk=ATTEMPT).provider_response_id == "p" * 200
    assert MessagePart.objects.get(pk=CALL).name == "n" * 200


# Tool calls


def test_a_call_that_waits_for_a_person_or_was_denied_is_not_entered() -> None:
    held = world.owned()
    write(held, *begun_call(), asked())

    assert refused(held, called())
    write(held, answered("deny"))
    assert refused(held, called())
    assert MessagePart.objects.get(pk=CALL).called_at is None


def test_an_approval_is_answered_once_and_only_when_it_was_asked_for() -> None:
    held = world.owned()
    write(held, *begun_call())

    assert refused(held, answered("approve"))
    write(held, asked(), answered("approve"))
    assert refused(held, answered("deny"))
    assert refused(held, answered("approve"))
    write(held, called())
    assert MessagePart.objects.get(pk=CALL).state == "running"


def test_a_call_is_entered_once_and_settled_once() -> None:
    held = world.owned()
    write(held, *begun_call())

    assert refused(held, ToolSucceeded(message=NEW, part=CALL, output="ok"))
    write(held, called())
    assert refused(held, called())
    write(held, ToolSucceeded(message=NEW, part=CALL, output="ok"))
    assert refused(held, ToolSucceeded(message=NEW, part=CALL, output="again"))
    assert refused(held, ToolFailed(message=NEW, part=CALL, error="late", unknown=True))
    assert MessagePart.objects.get(pk=CALL).output == "ok"


def test_a_person_who_approved_a_call_still_decides_what_became_of_it() -> None:
    held = world.owned()
    write(held, *begun_call(), asked(), answered("approve"), called())

    write(held, ToolFailed(message=NEW, part=CALL, error="Tool execution interrupted", unknown=True))

    call = MessagePart.objects.get(pk=CALL)
    assert (call.approval, call.decision, call.decided_at) == ("approved", None, None)
    write(held, decided())
    assert refused(held, decided())


def test_a_call_whose_outcome_is_known_is_not_decided() -> None:
    held = world.owned()
    write(held, *begun_call(), ToolFailed(message=NEW, part=CALL, error="not run", unknown=False))

    assert refused(held, decided())
