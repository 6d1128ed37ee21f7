"""Retention: sessions that nothing happened in for long are deleted, exported before if that is wanted."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from django.db.models import QuerySet

from sessions_app.log import SessionGone
from sessions_app.models import Session
from sessions_app.sessions import export
from sessions_app.sessions.delete import delete_unchanged

PAGE: Final = 200

Outcome = Literal["purged", "in use"]


@dataclass(frozen=True, kw_only=True)
class Purge:
    """Which sessions go: those that were active last before a moment, perhaps only archived ones."""

    before: datetime
    archived_only: bool = False

    def find(self) -> Iterator[Session]:
        """All of them, page by page in the order of their ids."""
        after = ""
        while page := list(self._rows().filter(pk__gt=after)[:PAGE]):
            yield from page
            after = page[-1].pk

    def _rows(self) -> "QuerySet[Session]":
        rows = Session.objects.filter(active_at__lt=self.before).order_by("pk")
        return rows.filter(archived=True) if self.archived_only else rows


def purge(session: Session, *, now: datetime, keep: Callable[[Session], None] | None = None) -> Outcome:
    """Delete the session if it still is as it was found, after ``keep`` has kept a copy.

    One that somebody drains or has written to since stays. What ``keep`` raises leaves the session as it is.
    """
    if session.owner_id is not None:
        return "in use"
    if keep is not None:
        keep(session)
    try:
        gone = delete_unchanged(session_id=session.pk, head_seq=session.head_seq, now=now)
    except SessionGone:
        return "purged"
    return "purged" if gone else "in use"


def keep_in(directory: Path, *, now: datetime) -> Callable[[Session], None]:
    """Keeps the lossless export of a session as ``ID.json``, complete and on the disk before it returns."""

    def keep(session: Session) -> None:
        path = directory / f"{session.pk}.json"
        draft = path.with_suffix(".part")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(export.write(session, form="json", now=now))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _store_name(directory)

    return keep


def _store_name(directory: Path) -> None:
    """A name is on the disk when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
