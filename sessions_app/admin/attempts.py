"""Attempts: what is proved of each request to a provider."""

from typing import Any, ClassVar, get_args

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from schema.attempts import AttemptState, Purpose
from sessions_app.admin import pages
from sessions_app.admin.base import NOTHING, folded, link, table
from sessions_app.admin.transcript import OfSession
from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.sessions import shapes, undecided


class Undecided(admin.SimpleListFilter):
    title = "needs decision"
    parameter_name = "needs_decision"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return undecided.undecided(queryset) if self.value() == "yes" else queryset


@admin.register(ProviderAttempt)
class ProviderAttemptAdmin(OfSession):
    list_display = (
        *("id", "of_session", "purpose", "state", "outcome", "error_class", "asked"),
        *("prepared_at", "dispatched_at", "first_output_at", "settled_at"),
    )
    list_filter = (
        Undecided,
        pages.words("state", *get_args(AttemptState)),
        pages.words("purpose", *get_args(Purpose)),
    )
    position = "prepared_at"
    identities = ("pk", "session_id", "message_id")
    search_help_text = "The whole id, or the id of the message or session"
    exclude = ("error", "usage", "decision")
    readonly_fields: ClassVar[Any] = ("facts", "received", "shown_error", "shown_usage", "shown_decision")

    @admin.display(description="class")
    def error_class(self, row: ProviderAttempt) -> str:
        return str((row.error or {}).get("error_class", NOTHING))

    @admin.display(description="model")
    def asked(self, row: ProviderAttempt) -> str:
        return f"{row.provider}:{row.model}"

    @admin.display(description="facts in order")
    def facts(self, row: ProviderAttempt) -> SafeString:
        facts = shapes.attempt_facts(row)
        return table(
            ("at", "fact", "detail"), ([fact["at"], fact["fact"], folded(fact["detail"])] for fact in facts)
        )

    @admin.display(description="what was received in its step")
    def received(self, row: ProviderAttempt) -> SafeString | str:
        parts = MessagePart.objects.filter(message_id=row.message_id).select_related("checkpoint")
        shown = [_received(part) for part in parts.order_by("index")]
        return table(("part", "kind", "state", "received"), shown) if shown else NOTHING

    @admin.display(description="error")
    def shown_error(self, row: ProviderAttempt) -> SafeString | str:
        return folded(row.error)

    @admin.display(description="usage")
    def shown_usage(self, row: ProviderAttempt) -> SafeString | str:
        return folded(row.usage)

    @admin.display(description="decision")
    def shown_decision(self, row: ProviderAttempt) -> SafeString | str:
        return folded(row.decision)


def _received(part: MessagePart) -> list[Any]:
    if part.kind == "tool":
        became = "outcome unknown" if part.unknown_at is not None else part.state
        return [link(part), f"tool {part.name}", became, folded(part.input or part.raw_input)]
    return [link(part), part.kind, part.state, folded(shapes.text_so_far(part) or None)]
