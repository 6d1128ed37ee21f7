"""GET /sessions/{id}/export, GET /tool-calls/{id}/output and manage.py export_session."""

import base64
import io
import json
import tracemalloc
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.utils import timezone

from recovery.models import RecoveryClaim
from schema import codec
from sessions_app import sessions
from sessions_app.log import events_after
from sessions_app.models import SessionNote, ToolOverflow
from sessions_app.sessions import export, revert
from tests.api.callers import Caller, refused
from tests.recovery import scenes
from tests.recovery.test_claims_api import claimed
from tests.support import world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

HOSTILE = "<script>alert(1)</script>\n# Forged\n```\nnever closed"


async def _read(response: Any) -> bytes:
    return b"".join([piece async for piece in response.streaming_content])


def body(response: Any) -> bytes:
    """What a streamed answer holds."""
    assert response.status_code == 200, response.content
    return bytes(async_to_sync(_read)(response))


def exported(session_id: str, form: export.Format = "json") -> str:
    return "".join(export.write(world.row(session_id), form=form, now=timezone.now()))


def overflow(session_id: str, content: bytes, *, is_text: bool = True) -> str:
    name = f"ovf_{session_id}"
    ToolOverflow.objects.create(
        pk=name, session_id=session_id, created_at=world.NOW, content=content, is_text=is_text
    )
    return name


def everything(user_id: int) -> str:
    """A session with one of each: answers, calls, unknowns, decisions, a claim, a revert, a note."""
    claim = claimed(user_id)
    session_id = claim.session_id
    scenes.rest(session_id)
    first = scenes.say(session_id, HOSTILE)
    scenes.answer(session_id, HOSTILE)
    revert.stage(session_id=session_id, message_id=first, now=world.NOW)
    scenes.say(session_id, "Instead")
    scenes.finished_call(session_id, "42", overflow=overflow(session_id, bytes(range(256)) * 3000))
    scenes.unknown_call(session_id)
    SessionNote.objects.create(session_id=session_id, name="plan", text=HOSTILE, updated_at=world.NOW)
    world.prompt(session_id, "Pending", delivery="queue")
    return session_id


def test_the_json_file_holds_everything(ann: Caller) -> None:
    session_id = everything(ann.user_id)

    response = ann.get(f"/sessions/{session_id}/export")
    held = json.loads(body(response))

    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Content-Disposition"] == f'attachment; filename="holdfast-{session_id}.json"'
    assert held["format"] == "holdfast-session"
    stored = events_after(session_id, limit=10_000)
    assert held["events"] == [json.loads(json.dumps(event.to_json())) for event in stored]
    assert [event["seq"] for event in held["events"]] == list(range(1, held["session"]["head_seq"] + 1))
    for event in held["events"]:
        decoded = codec.decode(event_type=event["type"], version=event["version"], data=event["data"])
        assert decoded.to_json() == event["data"]
    visible = [message for message in held["messages"] if message["reverted_seq"] is None]
    shapes = sessions.message_shapes(sessions.messages_of(world.row(session_id)))
    assert [{**shape, "reverted_seq": None} for shape in shapes] == visible
    assert len(held["messages"]) > len(visible)
    assert {prompt["state"] for prompt in held["prompts"]} == {"promoted", "pending"}
    assert all(attempt["facts"] for attempt in held["attempts"])
    assert any(attempt["decision"] for attempt in held["attempts"])
    assert [each["claim"] for each in held["claims"]] == [RecoveryClaim.objects.get().pk]
    assert held["notes"][0]["text"] == HOSTILE
    (whole,) = held["overflows"]
    assert base64.b64decode(whole["base64"]) == bytes(range(256)) * 3000


def test_the_markdown_file_is_readable_and_what_was_hidden_is_not_in_it(ann: Caller) -> None:
    session_id = everything(ann.user_id)

    response = ann.get(f"/sessions/{session_id}/export?format=markdown", Accept="text/markdown")
    text = body(response).decode()

    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert response.headers["Content-Disposition"] == f'attachment; filename="holdfast-{session_id}.md"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert "## You · " in text
    assert "Instead" in text
    assert "Forged" not in text
    assert "*Tool* `lookup`: completed" in text
    assert "*Tool* `send_mail`: outcome unknown" in text
    assert "*Unknown: The server was interrupted" in text
    assert text.endswith("## Waiting to be sent\n\n*queue*\n\nPending\n")


def test_a_block_that_was_cut_does_not_swallow_what_follows(ann: Caller) -> None:
    session_id = world.session(user_id=ann.user_id, title="A\n# `forged`")
    scenes.say(session_id, "~~~~\ncode\n~~~")
    scenes.answer(session_id, HOSTILE)
    scenes.finished_call(session_id, "````\nfence")

    text = exported(session_id, "markdown")

    assert text.startswith("# A # 'forged'\n")
    assert "code\n~~~\n~~~~\n" in text
    assert "never closed\n```\n" in text
    assert "`````\n````\nfence\n`````" in text


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("plain", "plain"),
        ("```py\nx\n```", "```py\nx\n```"),
        ("```py\nx", "```py\nx\n```"),
        ("````\n```\nx", "````\n```\nx\n````"),
        ("```\na\n```\n~~~\nb", "```\na\n```\n~~~\nb\n~~~"),
        ("    ```\nindented", "    ```\nindented"),
        ("```\n``` not an end", "```\n``` not an end\n```"),
        ("", ""),
    ],
)
def test_only_an_open_block_is_closed(text: str, closed: str) -> None:
    assert export.closed(text) == closed


def test_an_export_of_a_long_session_takes_the_memory_of_a_piece(ann: Caller) -> None:
    session_id = world.session(user_id=ann.user_id)
    scenes.say(session_id)
    scenes.finished_call(session_id, "42", overflow=overflow(session_id, b"x" * 20_000_000))
    row = world.row(session_id)

    tracemalloc.start()
    try:
        size = sum(len(piece) for piece in export.write(row, form="json", now=timezone.now()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size > 26_000_000
    assert peak < 4_000_000


def test_pages_hide_nothing_of_a_session_with_many_rows(ann: Caller, monkeypatch: Any) -> None:
    monkeypatch.setattr(export, "_PAGE", 2)
    session_id = world.session(user_id=ann.user_id)
    for number in range(5):
        scenes.say(session_id, f"Question {number}")
        scenes.answer(session_id, f"Answer {number}")

    held = json.loads(exported(session_id))
    text = exported(session_id, "markdown")

    assert [len(held[name]) for name in ("prompts", "messages", "attempts")] == [5, 10, 5]
    assert [event["seq"] for event in held["events"]] == world.seqs(session_id)
    assert all(f"Question {number}" in text and f"Answer {number}" in text for number in range(5))


def test_an_empty_session_is_a_file_too(ann: Caller, session_id: str) -> None:
    assert json.loads(exported(session_id))["messages"] == []
    assert exported(session_id, "markdown").startswith("# Untitled chat\n")


def test_others_get_nothing(ann: Caller, bob: Caller, session_id: str) -> None:
    refused(bob.get(f"/sessions/{session_id}/export"), 404, "session_not_found")
    refused(ann.get(f"/sessions/{session_id}/export?format=pdf"), 400, "invalid")


def test_the_command_writes_the_same_file(ann: Caller) -> None:
    session_id = everything(ann.user_id)

    def run(*options: str) -> str:
        out = io.StringIO()
        call_command("export_session", session_id, *options, stdout=out)
        return out.getvalue()

    held, told = json.loads(run()), json.loads(body(ann.get(f"/sessions/{session_id}/export")))
    held.pop("exported_at"), told.pop("exported_at")
    assert held == told
    assert run("--format", "markdown").startswith("# Untitled chat\n")
    with pytest.raises(CommandError, match="no session 'ses_unknown'"):
        call_command("export_session", "ses_unknown")


@pytest.mark.parametrize(
    ("content", "is_text", "kind", "suffix"),
    [
        (HOSTILE.encode(), True, "text/plain; charset=utf-8", "txt"),
        (b"\x00\xff<html>", False, "application/octet-stream", "bin"),
    ],
)
def test_the_whole_output_of_a_call_is_only_ever_a_file(
    ann: Caller, bob: Caller, session_id: str, content: bytes, is_text: bool, kind: str, suffix: str
) -> None:
    scenes.say(session_id)
    call = scenes.finished_call(session_id, "cut", overflow=overflow(session_id, content, is_text=is_text))
    small = scenes.finished_call(session_id, "whole")

    response = ann.get(f"/tool-calls/{call}/output", Accept="text/html")

    assert body(response) == content
    assert response.headers["Content-Type"] == kind
    assert response.headers["Content-Disposition"] == f'attachment; filename="{call}.{suffix}"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    refused(ann.get(f"/tool-calls/{small}/output"), 404, "no_overflow")
    refused(bob.get(f"/tool-calls/{call}/output"), 404, "tool_call_not_found")
