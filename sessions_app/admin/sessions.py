"""Sessions with what they are doing, and each with all that belongs to it."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from schema.status import Status
from schema.text import clean
from sessions_app import sessions
from sessions_app.admin import finding, pages, timeline
from sessions_app.admin.base import NOTHING, ReadOnly, link, list_link, short, table
from sessions_app.models import (
    MessagePart,
    ProviderAttempt,
    Session,
    SessionEvent,
    SessionInput,
    SessionMessage,
)
from sessions_app.sessions import orphans, undecided


class _WithStates(pages.Keyset):
    """Derives the states of one page together, for a fixed number of statements."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        found = sessions.statuses([row.pk for row in rows], now=timezone.now())
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
        ("What belongs to it", {"fields": ("lists", "timeline")}),
    )
    readonly_fields = ("state", "unknown", "lists", "timeline")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Session]":
        return super().get_queryset(request).select_related("user", "owner", "recovering")

    def get_urls(self) -> list[Any]:
        guard, name = self.admin_site.admin_view, "sessions_app_session"
        return [
            path("find/", guard(self.find), name=f"{name}_find"),
            path("<path:object_id>/timeline/", guard(self.show_timeline), name=f"{name}_timeline"),
            *super().get_urls(),
        ]

    def find(self, request: HttpRequest) -> HttpResponseBase:
        """To the page of any id."""
        wanted = request.GET.get("id", "")
        address = finding.address_of(wanted)
        if address is None:
            self.message_user(
                request, f"{short(wanted) or 'Nothing'} is no id of anything here.", messages.WARNING
            )
        return redirect(address or "admin:index")

    def show_timeline(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """The whole log, page by page, never counted."""
        session = self.get_object(request, clean(object_id))
        if not self.has_view_permission(request, session):
            raise PermissionDenied
        if session is None:
            raise Http404
        try:
            before = timeline.read_position(request.GET.get("before"))
        except IncorrectLookupParameters:
            return redirect("admin:sessions_app_session_timeline", session.pk)
        events, older = timeline.page(session.pk, before=before)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Timeline of {session.pk}",
            "session": session,
            "events": timeline.render(events),
            "older": older,
            "is_newest": before is None,
        }
        return TemplateResponse(request, "admin/sessions_app/timeline.html", context)

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[pages.Keyset]:
        return _WithStates

    @admin.display(description="title")
    def shown_title(self, session: Session) -> str:
        return short(session.title) or NOTHING

    @admin.display(description="state")
    def state(self, session: Session) -> str:
        known: str | None = getattr(session, "derived_state", None)
        return known or self._status(session).state

    @admin.display(description="needs a decision")
    def unknown(self, session: Session) -> SafeString | str:
        status = self._status(session)
        rows = [["unknown attempt", link(ProviderAttempt(pk=pk))] for pk in status.unknown.attempts]
        rows += [["unknown call", link(MessagePart(pk=pk))] for pk in status.unknown.tools]
        rows += [["call that waits for approval", link(MessagePart(pk=pk))] for pk in status.waiting]
        return table(("what", "id"), rows) if rows else NOTHING

    @admin.display(description="lists")
    def lists(self, session: Session) -> SafeString:
        """The way to all rows of each kind."""
        return format_html_join(" · ", "{}", ((each,) for each in self.links(session)))

    def links(self, session: Session) -> list[SafeString]:
        kinds = {
            "Attempts": ProviderAttempt,
            "Inputs": SessionInput,
            "Messages": SessionMessage,
            "Parts": MessagePart,
            "Events": SessionEvent,
        }
        return [list_link(model, name, session=session.pk) for name, model in kinds.items()]

    @admin.display(description="timeline")
    def timeline(self, session: Session) -> SafeString:
        events, older = timeline.page(session.pk)
        address = reverse("admin:sessions_app_session_timeline", args=[session.pk])
        more = "" if older is None else format_html('<a href="{}?before={}">Older</a>', address, older)
        return format_html("{}{}", timeline.render(events), more)

    def _status(self, session: Any) -> Status:
        """Derived once for a page."""
        if not hasattr(session, "derived_status"):
            session.derived_status = sessions.get_status(session.pk, now=timezone.now())
        status: Status = session.derived_status
        return status
