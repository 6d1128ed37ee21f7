"""What administrators configure: the only rows that are edited here."""

from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from sessions_app import environment
from sessions_app.admin.base import NOTHING, ModelAdmin, ReadOnly, folded, table
from sessions_app.attempts import testing
from sessions_app.models import Agent, ChatModel, McpServer, ModelTest, Provider
from sessions_app.models.catalog import LIMITS, PRICES
from sessions_app.providers import named, registry


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


class _ProviderForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in registry.built_in_names():
            raise ValidationError(f"{name!r} is built in. Choose another name.")
        return name

    def clean_base_url(self) -> str:
        try:
            return named.checked_base_url(self.cleaned_data["base_url"])
        except named.BadBaseUrl as bad:
            raise ValidationError(str(bad)) from None

    def clean_key_variable(self) -> str:
        variable: str = self.cleaned_data["key_variable"].strip()
        if variable and (reason := environment.why_unusable(variable)):
            raise ValidationError(reason)
        return variable


@admin.register(Provider)
class ProviderAdmin(_Named):
    """Where requests may go is an administrator's to say, and nobody else's."""

    form = _ProviderForm
    list_display = ("name", "wire_format", "base_url", "key", "enabled")

    @admin.display(description="key")
    def key(self, provider: Provider) -> str:
        if not provider.key_variable:
            return "none needed"
        is_there = named.access(provider).is_configured
        return f"{provider.key_variable}: {'set' if is_there else 'not set in this process'}"

    def delete_model(self, request: HttpRequest, obj: Provider) -> None:
        self.delete_queryset(request, Provider.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[Provider]") -> None:
        """What is known of its models goes with it."""
        ChatModel.objects.filter(provider__in=list(queryset.values_list("pk", flat=True))).delete()
        super().delete_queryset(request, queryset)


class _ChatModelForm(forms.ModelForm):  # type: ignore[type-arg]
    provider = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "provider" in self.fields:
            names = [*registry.provider_names(), *([self.instance.provider] if self.instance.pk else [])]
            self.fields["provider"].choices = [(name, name) for name in dict.fromkeys(names)]  # type: ignore[attr-defined]

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"].strip()
        if not model:
            raise ValidationError("Enter the model's name at its provider.")
        return model

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or self.cleaned_data
        stated = [cleaned.get(name) is not None for name in ("input_price", "output_price")]
        if any(stated) != all(stated):
            self.add_error(None, "Give the prices of both input and output, or of neither.")
        return cleaned


@admin.register(ChatModel)
class ChatModelAdmin(ModelAdmin):
    form = _ChatModelForm
    list_display = ("__str__", "label", "enabled", "tools", "input_price", "output_price")
    list_filter = ("enabled",)
    search_fields = ("provider", "model", "label")
    ordering = ("provider", "model")
    fieldsets = (
        (None, {"fields": ("provider", "model", "label", "enabled")}),
        ("What it can do", {"fields": ("tools", "context_tokens", "max_output_tokens")}),
        (
            "How long it may take",
            {
                "fields": LIMITS,
                "description": "In seconds. Empty: the site's. Past one, what was sent is unknown.",
            },
        ),
        ("What it costs", {"fields": PRICES}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("provider", "model") if obj else ()

    def get_urls(self) -> list[Any]:
        test = path(
            "<int:pk>/test/", self.admin_site.admin_view(self.test), name="sessions_app_chatmodel_test"
        )
        return [test, *super().get_urls()]

    @method_decorator(require_POST)
    def test(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask the model once, and lead to what came of it."""
        row = get_object_or_404(ChatModel, pk=pk)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        try:
            tested = testing.run(str(row), by=request.user.get_username())
        except registry.ModelError as unusable:
            self.message_user(request, f"Nothing was sent. {unusable}", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:sessions_app_chatmodel_change", args=[pk]))
        is_well = tested.outcome == "completed"
        said = f"Tested {row}: {'it answered' if is_well else f'no whole answer ({tested.outcome})'}."
        self.message_user(request, said, messages.SUCCESS if is_well else messages.WARNING)
        return HttpResponseRedirect(reverse("admin:sessions_app_modeltest_change", args=[tested.pk]))


_FACTS: Final = ("prepared_at", "dispatched_at", "headers_at", "first_output_at", "ended_at")


@admin.register(ModelTest)
class ModelTestAdmin(ReadOnly):
    """What came of each test of a model."""

    list_display = ("id", "asked", "state", "took", "by", "prepared_at")
    search_help_text = "The whole id"
    fields = (
        *("id", "asked", "by", "state", "billed", "finish", "text", "reasoning", "shown_error"),
        *("facts", "shown_usage", "status", "provider_request_id", "request_digest"),
    )
    readonly_fields: ClassVar[Any] = ("asked", "state", "billed", "facts", "shown_error", "shown_usage")

    @admin.display(description="model")
    def asked(self, row: ModelTest) -> str:
        return f"{row.provider}:{row.model}"

    @admin.display(description="outcome")
    def state(self, row: ModelTest) -> str:
        return testing.state_of(row, now=timezone.now())

    @admin.display(description="may have been billed")
    def billed(self, row: ModelTest) -> str:
        return "yes" if testing.may_be_billed(testing.state_of(row, now=timezone.now())) else "no"

    @admin.display(description="took")
    def took(self, row: ModelTest) -> str:
        return (
            NOTHING if row.ended_at is None else f"{(row.ended_at - row.prepared_at).total_seconds():.2f} s"
        )

    @admin.display(description="facts in order")
    def facts(self, row: ModelTest) -> str:
        rows = [
            (
                name.removesuffix("_at").replace("_", " "),
                at,
                f"{(at - row.prepared_at).total_seconds():.3f} s",
            )
            for name in _FACTS
            if (at := getattr(row, name)) is not None
        ]
        return table(("fact", "at", "after"), rows)

    @admin.display(description="error")
    def shown_error(self, row: ModelTest) -> str:
        return folded(row.error)

    @admin.display(description="usage and cost")
    def shown_usage(self, row: ModelTest) -> str:
        return folded(row.usage)
