"""Sessions with what they are doing, and each with all that belongs to it."""

from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app import sessions
from sessions_app.admin.base import NOTHING, ReadOnly, folded, link, list_link, short, table
from sessions_app.models import ProviderAttempt, Session, SessionEvent, SessionInput, SessionMessage
from sessions_app.sessions import orphans, undecided

_SHOWN: Final = 50
"""Rows of each kind on the page of one session; a link leads to all."""


class _WithStates(ChangeList):
    """Derives the states of one page together, for a fixed number of statements."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        found = sessions.statuses(rows, now=timezone.now())
        for row in rows:
            row.derived_state = found[row.pk].state
        self.result_list: Any = rows


class _YesFilter(admin.SimpleListFilter):
    """A filter that is on or off."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return self.chosen(queryset) if self.value() == "yes" else queryset

    def chosen(self, rows: "QuerySet[Any]") -> "QuerySet[Any]":
        raise NotImplementedError


class NeedsDecision(_YesFilter):
    title = "needs decision"
    parameter_name = "needs_decision"

    def chosen(self, rows: "QuerySet[Session]") -> "QuerySet[Session]":
        return undecided.needing_decision(rows)


class Orphaned(_YesFilter):
    title = "orphaned"
    parameter_name = "orphaned"

    def chosen(self, rows: "QuerySet[Session]") -> "QuerySet[Session]":
        return orphans.orphaned(rows)


class Owned(_YesFilter):
    title = "owned"
    parameter_name = "owned"

    def chosen(self, rows: "QuerySet[Session]") -> "QuerySet[Session]":
        return rows.filter(owner__isnull=False)


class Owed(_YesFilter):
    title = "run owed"
    parameter_name = "owed"

    def chosen(self, rows: "QuerySet[Session]") -> "QuerySet[Session]":
        return rows.filter(owed_at__isnull=False)


@admin.register(Session)
class SessionAdmin(ReadOnly):
    list_display = ("id", "user", "shown_title", "state", "owner", "active_at", "archived")
    list_filter = (NeedsDecision, Orphaned, Owned, Owed, "parked", "archived")
    list_select_related = ("user", "owner")
    fieldsets = (
        (None, {"fields": ("id", "user", "title", "state", "unknown", "created_at", "active_at")}),
        ("Chosen", {"fields": ("agent", "model", "recovery_policy", "archived", "pinned")}),
        (
            "Running",
            {
                "fields": (
                    ("owner", "fence"),
                    ("owed_at", "wake_enqueued_at", "step_count"),
                    ("hold_seq", "hold_reason"),
                    ("interrupt_fence", "interrupt_seq", "interrupt_resume"),
                    ("parked", "recovery_count", "recovering"),
                    ("input_tokens", "output_tokens", "cost", "uncounted_attempts"),
                    "head_seq",
                )
            },
        ),
        ("What belongs to it", {"fields": ("attempts", "inputs", "messages", "timeline")}),
    )
    readonly_fields = ("state", "unknown", "attempts", "inputs", "messages", "timeline")

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:
        return _WithStates

    @admin.display(description="title")
    def shown_title(self, session: Session) -> str:
        return short(session.title) or NOTHING

    @admin.display(description="state")
    def state(self, session: Session) -> str:
        known: str | None = getattr(session, "derived_state", None)
        return known or sessions.get_status(session, now=timezone.now()).state

    @admin.display(description="needs a decision")
    def unknown(self, session: Session) -> SafeString | str:
        attempts = undecided.undecided(session.attempts.order_by("-prepared_at"))[:_SHOWN]
        calls = undecided.undecided_calls(session.parts.filter(kind="tool").order_by("-started_at"))[:_SHOWN]
        rows = [["attempt", link(row), row.unknown_at] for row in attempts]
        rows += [[f"tool {call.name}", link(call), call.unknown_at or "waits for approval"] for call in calls]
        return table(("what", "id", "unknown since"), rows) if rows else NOTHING

    @admin.display(description="attempts")
    def attempts(self, session: Session) -> SafeString:
        rows = session.attempts.order_by("-prepared_at")[:_SHOWN]
        return _newest(
            ProviderAttempt,
            session,
            ("attempt", "state", "outcome", "model", "prepared"),
            (
                [link(row), row.state, row.outcome, f"{row.provider}:{row.model}", row.prepared_at]
                for row in rows
            ),
        )

    @admin.display(description="inputs")
    def inputs(self, session: Session) -> SafeString:
        rows = session.inputs.order_by("-admitted_seq")[:_SHOWN]
        return _newest(
            SessionInput,
            session,
            ("input", "origin", "delivery", "admitted", "promoted", "withdrawn", "text"),
            (
                [
                    link(row),
                    row.origin,
                    row.delivery,
                    row.admitted_seq,
                    row.promoted_seq,
                    row.withdrawn_seq,
                    short(row.text),
                ]
                for row in rows
            ),
        )

    @admin.display(description="messages")
    def messages(self, session: Session) -> SafeString:
        rows = session.messages.order_by("-seq")[:_SHOWN]
        return _newest(
            SessionMessage,
            session,
            ("message", "seq", "type", "state", "text"),
            ([link(row), row.seq, row.type, row.state, short(row.text)] for row in rows),
        )

    @admin.display(description="timeline")
    def timeline(self, session: Session) -> SafeString:
        rows = session.events.order_by("-seq")[:_SHOWN]
        return _newest(
            SessionEvent,
            session,
            ("seq", "time", "type", "data"),
            ([link(row, str(row.seq)), row.time, row.type, folded(row.data)] for row in rows),
        )


def _newest(model: type[Model], session: Session, head: tuple[str, ...], rows: Any) -> SafeString:
    """The newest rows of one kind, and the way to all of them."""
    return format_html("{}{}", table(head, rows), list_link(model, "All of this session", session=session.pk))
