"""What the index begins with: what needs a decision, and who works."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sessions_app.admin.base import NOTHING, link, list_link, short, table
from sessions_app.models import MessagePart, ProviderAttempt, Session, Worker
from sessions_app.ownership import presumed_alive
from sessions_app.sessions import undecided

SHOWN: Final = 10


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    shown: SafeString | str
    """A table, or what is said when there is nothing."""
    more: SafeString

    @property
    def is_empty(self) -> bool:
        return not isinstance(self.shown, SafeString)


def needing_decision(request: HttpRequest) -> Section | None:
    """Outcomes that nobody knows, calls that wait for an answer, sessions that killed their workers."""
    rows = [
        *(_attempts() if request.user.has_perm("sessions_app.view_providerattempt") else []),
        *(_calls() if request.user.has_perm("sessions_app.view_messagepart") else []),
        *(_parked() if request.user.has_perm("sessions_app.view_session") else []),
    ]
    if not request.user.has_perm("sessions_app.view_session"):
        return None
    return Section(
        title="Needs a decision",
        shown=table(("what", "id", "session", "since", "about"), rows) if rows else "Nothing does.",
        more=list_link(Session, "All sessions that need one", needs_decision="yes"),
    )


def _attempts() -> list[list[Any]]:
    rows = undecided.undecided(ProviderAttempt.objects.order_by("-unknown_at"))[:SHOWN]
    return [
        [
            "unknown attempt",
            link(row),
            link(Session(pk=row.session_id)),
            row.unknown_at,
            f"{row.provider}:{row.model}",
        ]
        for row in rows
    ]


def _calls() -> list[list[Any]]:
    calls = MessagePart.objects.order_by("-started_at")
    # Two questions, each answered by an index of its own: one over both would read the whole table.
    rows = [*undecided.unknown_calls(calls)[:SHOWN], *undecided.waiting_calls(calls)[:SHOWN]]
    return [
        [
            "waits for approval" if row.unknown_at is None else "unknown call",
            link(row),
            link(Session(pk=row.session_id)),
            row.unknown_at or row.started_at,
            row.name,
        ]
        for row in rows
    ]


def _parked() -> list[list[Any]]:
    rows = Session.objects.filter(parked=True).order_by("-active_at")[:SHOWN]
    return [
        ["parked session", link(row), link(row), row.active_at, short(row.title) or NOTHING] for row in rows
    ]


def working(request: HttpRequest) -> Section | None:
    """Workers that are not known to have ended, with how many sessions each drains."""
    if not request.user.has_perm("sessions_app.view_worker"):
        return None
    rows = presumed_alive().annotate(drains=Count("owned")).order_by("-heartbeat_at")[:SHOWN]
    shown = [
        [
            link(row),
            row.kind,
            f"{row.host} ({row.pid})",
            row.heartbeat_at,
            list_link(Session, str(row.drains), owner__id__exact=row.pk),
        ]
        for row in rows
    ]
    head = ("worker", "kind", "host", "heartbeat", "drains")
    return Section(
        title="Live workers",
        shown=table(head, shown) if shown else "Nobody works. Prompts wait until manage.py up runs.",
        more=list_link(Worker, "All workers"),
    )


SECTIONS: Final[list[Callable[[HttpRequest], Section | None]]] = [needing_decision, working]
"""In their order. Who adds something to see adds a section."""


def sections(request: HttpRequest) -> list[Section]:
    """Those that this person may see."""
    found = (section(request) for section in SECTIONS)
    return [section for section in found if section is not None]
