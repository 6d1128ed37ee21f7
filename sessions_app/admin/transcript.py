"""What was admitted and what came of it: inputs, messages, parts, and the log behind them."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sessions_app.admin import pages
from sessions_app.admin.base import NOTHING, ReadOnly, folded, link, short
from sessions_app.models import (
    MessagePart,
    PartCheckpoint,
    SessionEvent,
    SessionInput,
    SessionMessage,
    SessionNote,
    Tombstone,
    ToolOverflow,
)
from sessions_app.sessions import undecided


class OfSession(ReadOnly):
    """Rows of a session: found by its id too, and then in the order of its log."""

    identities: tuple[str, ...] = ("pk", "session_id")
    search_help_text = "The whole id, or the id of the session"
    position = "seq"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Within one session its own index is walked, not that of the whole table.
        return (f"-{self.position}",) if "session" in request.GET else ("-pk",)

    @admin.display(description="session")
    def of_session(self, row: Any) -> SafeString:
        return link(row._meta.get_field("session").related_model(pk=row.session_id))  # noqa: SLF001


@admin.register(SessionInput)
class SessionInputAdmin(OfSession):
    list_display = ("id", "of_session", "origin", "delivery", "became", "created_at", "shown_text")
    position = "admitted_seq"

    @admin.display(description="state")
    def became(self, row: SessionInput) -> str:
        if row.promoted_seq is not None:
            return f"promoted at {row.promoted_seq}"
        return "pending" if row.withdrawn_seq is None else f"withdrawn at {row.withdrawn_seq}"

    @admin.display(description="text")
    def shown_text(self, row: SessionInput) -> str:
        return short(row.text)


@admin.register(SessionMessage)
class SessionMessageAdmin(OfSession):
    list_display = ("id", "of_session", "seq", "type", "state", "model", "created_at", "shown_text")
    exclude = ("error", "usage", "retry")
    readonly_fields = ("shown_error", "shown_usage", "shown_retry")

    @admin.display(description="text")
    def shown_text(self, row: SessionMessage) -> str:
        return short(row.text)

    @admin.display(description="error")
    def shown_error(self, row: SessionMessage) -> SafeString | str:
        return folded(row.error)

    @admin.display(description="usage")
    def shown_usage(self, row: SessionMessage) -> SafeString | str:
        return folded(row.usage)

    @admin.display(description="retry")
    def shown_retry(self, row: SessionMessage) -> SafeString | str:
        return folded(row.retry)


class NeedsDecision(admin.SimpleListFilter):
    title = "needs decision"
    parameter_name = "needs_decision"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return undecided.undecided_calls(queryset) if self.value() == "yes" else queryset


@admin.register(MessagePart)
class MessagePartAdmin(OfSession):
    list_display = (
        *("id", "of_session", "of_message", "index", "kind", "state", "name", "approval", "became"),
        "shown_text",
    )
    list_filter = (
        NeedsDecision,
        pages.words("kind", "text", "reasoning", "tool"),
        pages.words("state", "open", "pending", "running", "completed", "error"),
    )
    exclude = ("replay", "input", "annotations", "decision")
    readonly_fields = ("shown_input", "shown_annotations", "shown_decision")
    position = "pk"
    identities = ("pk", "session_id", "message_id")
    search_help_text = "The whole id, or the id of the message or session"

    @admin.display(description="outcome")
    def became(self, row: MessagePart) -> str:
        if row.unknown_at is None:
            return NOTHING
        return "unknown" if row.decision is None else f"unknown, decided: {row.decision['action']}"

    @admin.display(description="input")
    def shown_input(self, row: MessagePart) -> SafeString | str:
        return folded(row.input)

    @admin.display(description="annotations")
    def shown_annotations(self, row: MessagePart) -> SafeString | str:
        return folded(row.annotations)

    @admin.display(description="decision")
    def shown_decision(self, row: MessagePart) -> SafeString | str:
        return folded(row.decision)

    @admin.display(description="message")
    def of_message(self, row: MessagePart) -> SafeString:
        return link(SessionMessage(pk=row.message_id))

    @admin.display(description="text")
    def shown_text(self, row: MessagePart) -> str:
        return short(row.text or row.output)


@admin.register(SessionEvent)
class SessionEventAdmin(OfSession):
    list_display = ("place", "of_session", "type", "version", "time", "shown_data")
    list_display_links = ("place",)
    identities = ("session_id",)
    search_help_text = "The whole id of the session"
    exclude = ("data",)
    readonly_fields = ("shown_data",)

    @admin.display(description="seq")
    def place(self, row: SessionEvent) -> int:
        return row.seq

    @admin.display(description="data")
    def shown_data(self, row: SessionEvent) -> SafeString | str:
        return folded(row.data)


@admin.register(PartCheckpoint)
class PartCheckpointAdmin(ReadOnly):
    list_display = ("pk", "fence", "shown_text")

    @admin.display(description="text so far")
    def shown_text(self, row: PartCheckpoint) -> str:
        return short(row.text)


@admin.register(ToolOverflow)
class ToolOverflowAdmin(OfSession):
    """The content itself may be anything and of any size; it is not shown."""

    list_display = ("id", "of_session", "created_at", "is_text")
    exclude = ("content",)
    position = "pk"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("content")


@admin.register(SessionNote)
class SessionNoteAdmin(OfSession):
    list_display = ("pk", "of_session", "name", "updated_at", "shown_text")
    position = "pk"
    identities = ("session_id",)
    search_help_text = "The whole id of the session"

    @admin.display(description="text")
    def shown_text(self, row: SessionNote) -> str:
        return short(row.text)


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnly):
    list_display = ("id", "deleted_at")
    list_display_links = None
