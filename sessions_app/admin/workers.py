"""Workers, alive and gone."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from sessions_app.admin import pages
from sessions_app.admin.base import ReadOnly, list_link
from sessions_app.models import Figure, Session, Worker

_ALIVE = Q(stopped_at=None, dead_at=None)


class Condition(admin.SimpleListFilter):
    """A stale heartbeat proves nothing; it is where to look first."""

    title = "condition"
    parameter_name = "condition"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("alive", "Not known to have ended"),
            ("stale", "Stale heartbeat"),
            ("dead", "Declared dead"),
            ("stopped", "Stopped"),
        ]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        lease_ago = timezone.now() - timedelta(seconds=settings.HOLDFAST_LEASE_SECONDS)
        chosen = {
            "alive": _ALIVE,
            "stale": _ALIVE & Q(heartbeat_at__lt=lease_ago),
            "dead": Q(dead_at__isnull=False),
            "stopped": Q(dead_at=None, stopped_at__isnull=False),
        }.get(self.value() or "", Q())
        return queryset.filter(chosen)


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    list_display = ("id", "condition", "kind", "host", "pid", "started_at", "heartbeat_at")
    list_filter = (Condition, pages.words("kind", "worker", "web", "command"))
    readonly_fields = ("condition", "sessions")

    @admin.display(description="condition")
    def condition(self, worker: Worker) -> str:
        if worker.dead_at is not None:
            return f"dead ({worker.death})"
        return "alive" if worker.stopped_at is None else "stopped"

    @admin.display(description="sessions")
    def sessions(self, worker: Worker) -> SafeString:
        return list_link(Session, "Sessions that it owns", owner__id__exact=worker.pk)


@admin.register(Figure)
class FigureAdmin(ReadOnly):
    """What /metrics tells."""

    list_display = ("name", "value")
    search_help_text = "The whole name"
