"""Workers, alive and gone."""

from django.contrib import admin

from sessions_app.admin.base import ReadOnly
from sessions_app.models import Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    list_display = ("id", "condition", "kind", "host", "pid", "started_at", "heartbeat_at")
    readonly_fields = ("condition",)

    @admin.display(description="condition")
    def condition(self, worker: Worker) -> str:
        if worker.dead_at is not None:
            return f"dead ({worker.death})"
        return "alive" if worker.stopped_at is None else "stopped"
