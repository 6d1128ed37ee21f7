"""Which messages the next request is made from."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schema.events import (
    AgentSwitched,
    AttemptPrepared,
    EventData,
    ReasoningEnded,
    ReasoningStarted,
    StepEnded,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolApprovalDecided,
    ToolApprovalRequested,
    ToolInputEnded,
    ToolInputStarted,
)
from sessions_app import history
from sessions_app.log import Held
from sessions_app.models import SessionMessage
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def answer(held: Held, message: str) -> None:
    part = f"prt_{message}"
    facts: tuple[EventData, ...] = (
        StepStarted(message=message, agent="default", model="demo:scripted", step=1),
        AttemptPrepared(
            attempt=f"att_{message}", message=message, purpose="step", ordinal=1, provider="demo",
            model="scripted", request_digest="0" * 64,
        ),
        ReasoningStarted(message=message, part=f"{part}-0", index=0),
        ReasoningEnded(message=message, part=f"{part}-0", text="Why", complete=False, replay={"sig": 1}),
        TextStarted(message=message, part=f"{part}-1", index=1),
        TextEnded(message=message, part=f"{part}-1", text="That"),
        ToolInputStarted(message=message, part=f"{part}-2", index=2, call_id="c", name="send_mail"),
        ToolInputEnded(message=message, part=f"{part}-2", raw="{}"),
        ToolApprovalRequested(
            message=message, part=f"{part}-2", input={"to": "ann"}, input_digest="0" * 64,
            effect="side_effect", because="agent",
        ),
        ToolApprovalDecided(message=message, part=f"{part}-2", action="deny", by="ann", reason="No."),
        StepEnded(message=message, finish="stop"),
    )  # fmt: skip
    with world.transaction(held) as tx:
        for fact in facts:
            tx.append(fact)


def test_messages_come_in_the_order_of_the_log_with_their_parts_in_theirs() -> None:
    held = world.owned()
    answer(held, "msg_z-first-answer")
    world.prompt(held.session_id, "And?", message_id="msg_a-second-prompt")
    world.promote(held)
    answer(world.owned(), "msg_of-another-session")

    entries = history.select(held.session_id)

    assert [(entry.type, entry.text) for entry in entries] == [
        ("user", "Hello"),
        ("assistant", ""),
        ("user", "And?"),
    ]
    reasoning, text, call = entries[1].parts
    assert (reasoning.kind, reasoning.text, reasoning.complete, reasoning.replay) == (
        "reasoning",
        "Why",
        False,
        {"sig": 1},
    )
    assert (text.kind, text.text, text.complete) == ("text", "That", True)
    assert (call.kind, call.name, call.input, call.approval, call.entered, call.unknown) == (
        "tool", "send_mail", {"to": "ann"}, "denied", False, False,
    )  # fmt: skip
    assert call.decision is not None
    assert (call.decision.action, call.decision.reason) == ("deny", "No.")


@pytest.mark.rows_of_its_own
def test_what_waits_what_was_reverted_and_what_no_model_reads_is_left_out() -> None:
    held = world.owned()
    answer(held, "msg_reverted-answer")
    SessionMessage.objects.filter(pk="msg_reverted-answer").update(reverted_seq=99)
    with world.transaction(held) as tx:
        tx.append(AgentSwitched(message="msg_a-switch", agent="default"))
    world.prompt(held.session_id, "Still waiting")

    assert [entry.text for entry in history.select(held.session_id)] == ["Hello"]


def test_a_long_history_takes_two_statements() -> None:
    held = world.owned()
    for number in range(5):
        answer(held, f"msg_answer-{number}")

    with CaptureQueriesContext(connection) as captured:
        entries = history.select(held.session_id)

    assert len(entries) == 6
    assert len(captured) == 2


def test_attempts_are_counted_from_the_newest_prompt_of_a_person() -> None:
    held = world.owned()
    assert history.attempts_for_newest_prompt(held.session_id) == 0
    answer(held, "msg_first-answer")
    answer(held, "msg_second-answer")
    assert history.attempts_for_newest_prompt(held.session_id) == 2

    world.prompt(held.session_id)
    world.promote(held)

    assert history.attempts_for_newest_prompt(held.session_id) == 0
