"""The list of chats beside the transcript: the pinned, then fifty at a time, newest first, grouped by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, Q, Subquery, Value
from django.db.models.functions import Greatest, Lower, StrIndex, Substr
from django.utils.dateparse import parse_datetime

from schema.status import Status
from sessions_app import sessions
from sessions_app.models import MessagePart, SessionMessage
from sessions_app.sessions import shapes, undecided

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from sessions_app.models import Session

PAGE: Final = 50
MOST_PINNED: Final = 50
_BEFORE: Final = 30
_AROUND: Final = 120
ARCHIVED: Final = "archived:"
NEEDS_DECISION: Final = "needs:decision"
MARKS: Final[dict[str, tuple[str, str]]] = {
    "busy": ("running", "Running"),
    "queued": ("running", "Queued"),
    "retrying": ("running", "Trying again"),
    "waiting": ("decision", "Waiting for you"),
    "needs_decision": ("decision", "Outcome unknown"),
    "orphaned": ("decision", "Interrupted"),
    "failed": ("failed", "The answer failed"),
    "unread": ("unread", "New since you were here"),
}
"""By the state of the session, then by how its newest answer ended; what is unread the browser knows."""


@dataclass(frozen=True, kw_only=True)
class Row:
    id: str
    title: str
    snippet: str
    """Where a message has what was looked for; empty without a search."""
    mark: str
    """running, decision, failed or empty: the shape and colour of the dot."""
    words: str
    pinned: bool
    archived: bool
    active_at: str


@dataclass(frozen=True, kw_only=True)
class Group:
    name: str
    rows: list[Row]


@dataclass(frozen=True, kw_only=True)
class Window:
    """Some of the user's sessions, and where the list goes on."""

    pinned: list["Session"]
    """All of them, on the newest window that nothing narrows down."""
    sessions: list["Session"]
    older: str
    """The cursor of the next older window; empty when there is none."""
    is_newest: bool

    @property
    def all(self) -> list["Session"]:
        return [*self.pinned, *self.sessions]


def read(*, user_id: int, cursor: str = "", query: str = "") -> Window:
    """One statement. A cursor that cannot be read shows the newest.

    ``archived:`` and ``needs:decision`` in the query are conditions, the rest is looked for in titles and in
    what was said; of what was said the newest that has it is shown.
    """
    rows = _sought(user_id, query)
    before = _parse(cursor)
    newest = rows if query.strip() else rows.filter(pinned=False)
    window = _before(newest, before)[: PAGE + 1]
    if before is not None or query.strip():
        return _window(list(_with_ends(window)), [], is_newest=before is None)
    first = rows.filter(pinned=True)[:MOST_PINNED]
    both = rows.filter(Q(pk__in=first.values("pk")) | Q(pk__in=window.values("pk")))
    found = list(_with_ends(both))
    others = [session for session in found if not session.pinned]
    return _window(others, [session for session in found if session.pinned], is_newest=True)


def _window(found: list["Session"], pinned: list["Session"], *, is_newest: bool) -> Window:
    shown = found[:PAGE]
    older = _cursor(shown[-1]) if len(found) > PAGE else ""
    return Window(pinned=pinned, sessions=shown, older=older, is_newest=is_newest)


def _sought(user_id: int, query: str) -> "QuerySet[Session]":
    words = query.split()
    rows = sessions.listed(user_id=user_id, archived=ARCHIVED in words)
    if NEEDS_DECISION in words:
        rows = undecided.needing_decision(rows)
    sought = " ".join(word for word in words if word not in (ARCHIVED, NEEDS_DECISION))
    return _with_text(rows, sought) if sought else rows


def _with_text(rows: "QuerySet[Session]", sought: str) -> "QuerySet[Session]":
    """Those with the text in their title or in a visible message, and the words around it."""
    said = SessionMessage.objects.filter(
        session_id=OuterRef("pk"), reverted_seq=None, type="user", text__icontains=sought
    )
    answered = MessagePart.objects.filter(
        session_id=OuterRef("pk"), kind="text", text__icontains=sought, message__reverted_seq=None
    )
    return rows.filter(Q(title__icontains=sought) | Exists(said) | Exists(answered)).annotate(
        said=Subquery(said.order_by("-seq").values(around=_around(sought))[:1]),
        answered=Subquery(answered.order_by("-started_at").values(around=_around(sought))[:1]),
    )


def _around(sought: str) -> Substr:
    """The words around the first place of a text in a column, however long it is."""
    place = StrIndex(Lower("text"), Value(sought.lower()))
    return Substr("text", Greatest(place - _BEFORE, Value(1)), _AROUND)


def _before(rows: "QuerySet[Session]", cursor: tuple[datetime, str] | None) -> "QuerySet[Session]":
    if cursor is None:
        return rows
    active_at, session_id = cursor
    return rows.filter(Q(active_at__lt=active_at) | Q(active_at=active_at, pk__lt=session_id))


def _with_ends(rows: "QuerySet[Session]") -> "QuerySet[Session]":
    """The same with the state of each session's newest message."""
    visible = SessionMessage.objects.filter(session_id=OuterRef("pk"), reverted_seq=None)
    return rows.annotate(ended_as=Subquery(visible.order_by("-seq").values("state")[:1]))


def groups(window: Window, statuses: Mapping[str, Status], *, today: date) -> list[Group]:
    """The rows of a window under the names of their days, without sessions that were deleted meanwhile."""
    others = [session for session in window.sessions if session.pk in statuses]
    named = groupby(others, key=lambda session: _day_name(session.active_at.date(), today))
    pinned = [session for session in window.pinned if session.pk in statuses]
    first = [Group(name="Pinned", rows=_rows(pinned, statuses))] if pinned else []
    return first + [Group(name=name, rows=_rows(list(members), statuses)) for name, members in named]


def _rows(members: Sequence["Session"], statuses: Mapping[str, Status]) -> list[Row]:
    return [_row(session, statuses[session.pk]) for session in members]


def _row(session: Any, status: Status) -> Row:
    found = getattr(session, "said", None) or getattr(session, "answered", None) or ""
    mark, words = MARKS.get(status.state) or MARKS.get(session.ended_as or "", ("", ""))
    return Row(
        id=session.pk,
        title=session.title,
        snippet=_snippet(found, session.title),
        mark=mark,
        words=words,
        pinned=session.pinned,
        archived=session.archived,
        active_at=shapes.rfc3339(session.active_at),
    )


def _snippet(found: str, title: str) -> str:
    """The words around what was found, unless the title says them already."""
    words = " ".join(found.split())
    return "" if title and words.startswith(title.rstrip("…")) else words


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
