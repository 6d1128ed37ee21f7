"""What administrators configure: the only rows that are edited here."""

from typing import Any

from django import forms
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


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]  # no subscript while the program runs
    """A field that was cleared says nothing, as one that was never filled in."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in ("tool_modes", "hosted_tools"):
            if name in cleaned and not cleaned[name]:
                cleaned[name] = {}
        return cleaned


@admin.register(Agent)
class AgentAdmin(_Named):
    form = AgentForm
    list_display = ("name", "model")


@admin.register(McpServer)
class McpServerAdmin(_Named):
    list_display = ("name", "transport", "enabled", "trusted")
