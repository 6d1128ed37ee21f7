"""What readers read from the database: small units on threads of their own, for many readers at once."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, ParamSpec, TypeVar

from django.db import close_old_connections
from django.db.models.functions import Length
from django.utils import timezone

from schema.status import Status
from sessions_app import log, ownership, sessions
from sessions_app.live import packets
from sessions_app.live.follower import Text
from sessions_app.live.packets import Item
from sessions_app.models import PartCheckpoint, Session, Worker

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 2
PAGE: Final = 500
MOST_IDS: Final = 500
"""Ids in one statement."""


async def run(unit: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a unit of reading on the readers' threads; its connection is given back in the end."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads(), lambda: _call(unit, *args, **kwargs))


def _call(unit: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return unit(*args, **kwargs)
    finally:
        close_old_connections()


_made: tuple[int, ThreadPoolExecutor] | None = None


def _threads() -> ThreadPoolExecutor:
    """This process's threads; a fork has none of its parent's."""
    global _made
    if _made is None or _made[0] != os.getpid():
        _made = (os.getpid(), ThreadPoolExecutor(THREADS, thread_name_prefix="live-reads"))
    return _made[1]


# Catching up


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A page of events; on the last page also the open parts, as they were before the events were read."""

    head_seq: int
    events: list[Item]
    texts: list[Text]
    is_last: bool
    status: Status | None


def load(session_id: str, *, after: int, with_status: bool) -> Loaded | None:
    """The events after ``after``. None when the session does not exist."""
    parts = sessions.open_parts(session_id)
    page = log.events_after(session_id, after=after, limit=PAGE)
    head_seq = log.head_seq(session_id)
    if head_seq is None:
        return None
    is_last = len(page) < PAGE
    return Loaded(
        head_seq=head_seq,
        events=[packets.whole_event_item(event) for event in page],
        texts=[Text(message=each.message, part=each.part, text=each.text) for each in parts],
        is_last=is_last,
        status=sessions.get_status(session_id, now=timezone.now()) if with_status and is_last else None,
    )


# Looking at many sessions at once


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a session's status depends on apart from events."""

    head_seq: int
    owner_id: str | None
    fence: int
    owed_at: datetime | None
    hold_seq: int | None
    parked: bool
    owner_alive: bool = True
    owner_quiet_since: datetime | None = None

    @property
    def may_be_given_up(self) -> bool:
        """Whether the status also depends on whoever recovers the session, which is not looked at here."""
        return self.parked and self.owner_id is not None and not self.owner_alive


@dataclass(frozen=True, kw_only=True)
class Question:
    """Which sessions to look at, what was seen of them last, and which texts are waited for."""

    session_ids: frozenset[str]
    seen: Mapping[str, Seen]
    dirty: frozenset[str]
    """Sessions whose status is wanted whatever was seen."""
    lengths: Mapping[str, int]
    """Open parts, with the length above which their stored text is wanted."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    seen: dict[str, Seen]
    """A session that is missing here does not exist."""
    statuses: dict[str, Status] = field(default_factory=dict)
    texts: dict[str, list[Text]] = field(default_factory=dict)
    """By session."""


def look(question: Question) -> Answer:
    """A number of statements that does not grow with the readers, per five hundred sessions."""
    now = timezone.now()
    seen = _with_liveness(dict(_rows(question.session_ids)), now=now)
    changed = [
        session_id
        for session_id, row in seen.items()
        if session_id in question.dirty or question.seen.get(session_id) != row or row.may_be_given_up
    ]
    return Answer(seen=seen, statuses=_statuses(changed, now=now), texts=_texts(question.lengths))


def _rows(session_ids: Iterable[str]) -> Iterator[tuple[str, Seen]]:
    for ids in _chunks(session_ids):
        rows = Session.objects.filter(pk__in=ids).values_list(
            "pk", "head_seq", "owner_id", "fence", "owed_at", "hold_seq", "parked"
        )
        for session_id, head_seq, owner_id, fence, owed_at, hold_seq, parked in rows:
            yield (
                session_id,
                Seen(
                    head_seq=head_seq,
                    owner_id=owner_id,
                    fence=fence,
                    owed_at=owed_at,
                    hold_seq=hold_seq,
                    parked=parked,
                ),
            )


def _with_liveness(seen: dict[str, Seen], *, now: datetime) -> dict[str, Seen]:
    """Each owner is looked at once, however many sessions it has."""
    owners = {row.owner_id for row in seen.values() if row.owner_id is not None}
    told: dict[str | None, Mapping[str, Any]] = {}
    for ids in _chunks(owners):
        for worker in Worker.objects.filter(pk__in=ids):
            if ownership.prove_death(worker, now=now):
                told[worker.pk] = {"owner_alive": False}
            elif (since := ownership.quiet_since(worker, now=now)) is not None:
                told[worker.pk] = {"owner_quiet_since": since}
    if not told:
        return seen
    return {
        session_id: replace(row, **told[row.owner_id]) if row.owner_id in told else row
        for session_id, row in seen.items()
    }


def _statuses(session_ids: Iterable[str], *, now: datetime) -> dict[str, Status]:
    found: dict[str, Status] = {}
    for ids in _chunks(session_ids):
        found.update(sessions.statuses(ids, now=now))
    return found


def _texts(lengths: Mapping[str, int]) -> dict[str, list[Text]]:
    """Only texts that have grown are fetched."""
    grown: list[str] = []
    for ids in _chunks(lengths):
        rows = PartCheckpoint.objects.filter(pk__in=ids).annotate(length=Length("text"))
        grown += [
            part_id for part_id, length in rows.values_list("pk", "length") if length > lengths[part_id]
        ]
    found: dict[str, list[Text]] = {}
    for ids in _chunks(grown):
        for row in PartCheckpoint.objects.select_related("part").filter(pk__in=ids):
            text = Text(message=row.part.message_id, part=row.pk, text=row.text)
            found.setdefault(row.part.session_id, []).append(text)
    return found


def _chunks(ids: Iterable[Any]) -> Iterator[list[Any]]:
    rest = list(ids)
    for start in range(0, len(rest), MOST_IDS):
        yield rest[start : start + MOST_IDS]
