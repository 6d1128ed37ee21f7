"""What administrators configure: the only rows that are edited here."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from sessions_app.admin.base import ModelAdmin
from sessions_app.models import Agent, McpServer


class _Named(ModelAdmin):
    """The name is the identity: sessions refer to it, and another name would be another row."""

    search_fields = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()


@admin.register(Agent)
class AgentAdmin(_Named):
    list_display = ("name", "model")


@admin.register(McpServer)
class McpServerAdmin(_Named):
    list_display = ("name", "transport", "enabled", "trusted")
