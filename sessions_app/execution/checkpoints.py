"""Checkpoints: the text so far of open parts, written for many sessions at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from sessions_app.log import Held
from sessions_app.models import MessagePart, PartCheckpoint, Session

BATCH: Final = 100


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The text so far of one part, and the ownership under which it was received."""

    held: Held
    part_id: str
    text: str


def write(*, checkpoints: Sequence[Checkpoint]) -> None:
    """Store them, leaving out parts that ended and sessions that are not their owner's any more.

    The rows are locked in one order, so that batches of different workers cannot wait for each other.
    """
    for start in range(0, len(checkpoints), BATCH):
        _write_batch(checkpoints[start : start + BATCH])


def _write_batch(batch: Sequence[Checkpoint]) -> None:
    with transaction.atomic(durable=True):
        fences = _locked_fences({checkpoint.held.session_id for checkpoint in batch})
        mine = [each for each in batch if fences.get(each.held.session_id) == _fence(each.held)]
        still_open = _open_parts(each.part_id for each in mine)
        PartCheckpoint.objects.bulk_create(
            [
                PartCheckpoint(part_id=each.part_id, fence=each.held.fence, text=each.text)
                for each in mine
                if each.part_id in still_open
            ],
            update_conflicts=True,
            unique_fields=["part"],
            update_fields=["fence", "text"],
        )


def store(*, held: Held, texts: Iterable[tuple[str, str]]) -> None:
    """Store the text so far of parts that the caller's transaction opened."""
    PartCheckpoint.objects.bulk_create(
        PartCheckpoint(part_id=part_id, fence=held.fence, text=text) for part_id, text in texts
    )


def _fence(held: Held) -> tuple[str, int]:
    return (held.worker_id, held.fence)


def _locked_fences(session_ids: set[str]) -> dict[str, tuple[str | None, int]]:
    rows = (
        Session.objects.select_for_update(no_key=True)
        .filter(pk__in=session_ids)
        .order_by("pk")
        .values_list("pk", "owner_id", "fence")
    )
    return {session_id: (owner_id, fence) for session_id, owner_id, fence in rows}


def _open_parts(part_ids: Iterable[str]) -> set[str]:
    rows = MessagePart.objects.filter(pk__in=list(part_ids), ended_at=None)
    return set(rows.values_list("pk", flat=True))
