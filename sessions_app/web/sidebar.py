"""The list of chats beside the transcript: newest first, fifty at a time, grouped by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.utils.dateparse import parse_datetime

from schema.status import Status
from sessions_app import sessions
from sessions_app.sessions import undecided

if TYPE_CHECKING:
    from sessions_app.models import Session

PAGE: Final = 50
ARCHIVED: Final = "archived:"
NEEDS_DECISION: Final = "needs:decision"
_MARKS: Final = {
    "busy": ("running", "Running"),
    "queued": ("running", "Queued"),
    "retrying": ("running", "Trying again"),
    "waiting": ("decision", "Waiting for you"),
    "needs_decision": ("decision", "Outcome unknown"),
    "orphaned": ("decision", "Interrupted"),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    id: str
    title: str
    mark: str
    """running, decision or empty: the shape and colour of the dot."""
    words: str


@dataclass(frozen=True, kw_only=True)
class Group:
    name: str
    rows: list[Row]


@dataclass(frozen=True, kw_only=True)
class Window:
    """Some of the user's sessions, and where the list goes on."""

    sessions: list["Session"]
    older: str
    """The cursor of the next older window; empty when there is none."""
    is_newest: bool


def read(*, user_id: int, cursor: str = "", query: str = "") -> Window:
    """One statement. A cursor that cannot be read shows the newest.

    ``archived:`` and ``needs:decision`` in the query are conditions, the rest is looked for in titles.
    """
    words = query.split()
    sought = " ".join(word for word in words if word not in (ARCHIVED, NEEDS_DECISION))
    rows = sessions.listed(user_id=user_id, archived=ARCHIVED in words, query=sought)
    if NEEDS_DECISION in words:
        rows = undecided.needing_decision(rows)
    before = _parse(cursor)
    if before is not None:
        active_at, session_id = before
        rows = rows.filter(Q(active_at__lt=active_at) | Q(active_at=active_at, pk__lt=session_id))
    found = list(rows[: PAGE + 1])
    shown = found[:PAGE]
    older = _cursor(shown[-1]) if len(found) > PAGE else ""
    return Window(sessions=shown, older=older, is_newest=before is None)


def groups(window: Window, statuses: Mapping[str, Status], *, today: date) -> list[Group]:
    """The rows of a window under the names of their days, without sessions that were deleted meanwhile."""
    living = [session for session in window.sessions if session.pk in statuses]
    pinned = [session for session in living if session.pinned]
    others = (session for session in living if not session.pinned)
    named = groupby(others, key=lambda session: _day_name(session.active_at.date(), today))
    first = [Group(name="Pinned", rows=_rows(pinned, statuses))] if pinned else []
    return first + [Group(name=name, rows=_rows(list(members), statuses)) for name, members in named]


def _rows(members: Sequence["Session"], statuses: Mapping[str, Status]) -> list[Row]:
    return [_row(session, statuses[session.pk]) for session in members]


def _row(session: "Session", status: Status) -> Row:
    mark, words = _MARKS.get(status.state, ("", ""))
    return Row(id=session.pk, title=session.title, mark=mark, words=words)


def _day_name(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day >= today - timedelta(days=7):
        return "Previous 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"


def _cursor(session: "Session") -> str:
    return f"{session.active_at.isoformat()}~{session.pk}"


def _parse(cursor: str) -> tuple[datetime, str] | None:
    time, _, session_id = cursor.partition("~")
    try:
        # A plus sign that came through a form is a space by now.
        active_at = parse_datetime(time.replace(" ", "+"))
    except ValueError:
        return None
    if active_at is None or active_at.tzinfo is None:
        return None
    return active_at, session_id
