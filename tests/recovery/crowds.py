"""Many sessions at once, inserted as rows: at rest, or lost in the middle of a stream."""

from pathlib import Path
from typing import Any, Final

from django.db import connection

from schema.inputs import content_digest
from sessions_app import ownership
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
from tests.support import world

BATCH: Final = 2000
_PROMPT: Final = "Hello"


def killed_worker(run_dir: Path, *, kind: str = "worker") -> Worker:
    """A worker as a kill leaves it: its row says nothing, its lock file is there and free."""
    registered = ownership.register(kind=kind, run_dir=run_dir, lease_seconds=20, now=world.NOW)
    registered.lock._close_copy()
    return Worker.objects.get(pk=registered.worker_id)


def at_rest(count: int, *, user_id: int) -> list[str]:
    """Sessions whose prompt was answered."""
    ids = [f"ses_at-rest-{number:07}" for number in range(count)]
    for some in _batches(ids):
        _sessions(some, user_id=user_id, head_seq=4)
        _said(some)
        SessionMessage.objects.bulk_create(
            SessionMessage(
                id=f"msg_answer-{each}", session_id=each, seq=3, type="assistant", state="completed",
                created_at=world.NOW, completed_at=world.NOW, agent="default", model="demo:scripted",
                finish="stop",
            )
            for each in some
        )  # fmt: skip
        _attempts(some, state="settled", outcome="completed", settled_at=world.NOW, finish="stop")
        _parts(some, state="completed", ended_at=world.NOW, text="Hello there")
    return ids


def lost(count: int, *, user_id: int, owner: str) -> list[str]:
    """Sessions of a lost owner whose answer was streaming; a part of it was kept."""
    ids = [f"ses_lost-{number:07}" for number in range(count)]
    for some in _batches(ids):
        _sessions(some, user_id=user_id, head_seq=4, owner_id=owner, fence=1, step_count=1)
        _said(some)
        SessionMessage.objects.bulk_create(
            SessionMessage(
                id=f"msg_answer-{each}", session_id=each, seq=3, type="assistant", state="running",
                created_at=world.NOW, agent="default", model="demo:scripted",
            )
            for each in some
        )  # fmt: skip
        _attempts(some, state="streaming", headers_at=world.NOW, first_output_at=world.NOW)
        _parts(some, state="open")
        PartCheckpoint.objects.bulk_create(
            PartCheckpoint(part_id=f"prt_{each}", fence=1, text="Hello th") for each in some
        )
    return ids


def analyze() -> None:
    """The planner of the database knows how large the tables are."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _batches(ids: list[str]) -> list[list[str]]:
    return [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]


def _sessions(ids: list[str], *, user_id: int, **columns: Any) -> None:
    Session.objects.bulk_create(
        Session(
            id=each, user_id=user_id, created_at=world.NOW, active_at=world.NOW, agent="default",
            model="demo:scripted", **columns,
        )
        for each in ids
    )  # fmt: skip
    SessionEvent.objects.bulk_create(
        SessionEvent(session_id=each, seq=seq, type="session.updated", version=1, data={}, time=world.NOW)
        for each in ids
        for seq in range(1, 5)
    )


def _said(ids: list[str]) -> None:
    SessionInput.objects.bulk_create(
        SessionInput(
            id=f"msg_said-{each}", session_id=each, origin="user", text=_PROMPT,
            digest=content_digest(_PROMPT), delivery="steer", delivery_admitted="steer", wake=True,
            created_at=world.NOW, admitted_seq=1, promoted_seq=2,
        )
        for each in ids
    )  # fmt: skip
    SessionMessage.objects.bulk_create(
        SessionMessage(
            id=f"msg_said-{each}", session_id=each, seq=2, type="user", state="completed",
            created_at=world.NOW, completed_at=world.NOW, origin="user", text=_PROMPT,
        )
        for each in ids
    )  # fmt: skip


def _owners(ids: list[str]) -> dict[str, int]:
    return dict(Session.objects.filter(pk__in=ids).values_list("pk", "user_id"))


def _attempts(ids: list[str], **columns: Any) -> None:
    owners = _owners(ids)
    ProviderAttempt.objects.bulk_create(
        ProviderAttempt(
            id=f"att_{each}", session_id=each, user_id=owners[each], message_id=f"msg_answer-{each}", purpose="step", ordinal=1,
            provider="demo", model="scripted", request_digest="d" * 64, client_request_id=f"att_{each}",
            prepared_at=world.NOW, dispatched_at=world.NOW, may_be_billed=True, **columns,
        )
        for each in ids
    )  # fmt: skip


def _parts(ids: list[str], **columns: Any) -> None:
    owners = _owners(ids)
    MessagePart.objects.bulk_create(
        MessagePart(
            id=f"prt_{each}", session_id=each, user_id=owners[each], message_id=f"msg_answer-{each}", index=0, kind="text",
            started_at=world.NOW, **columns,
        )
        for each in ids
    )  # fmt: skip
