"""What all read-only pages share: no way to change a row, no counting, lists in the order of an index."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from schema.text import clean
from sessions_app.admin import pages

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

_SHORT: Final = 100
NOTHING: Final = "-"


class ReadOnly(ModelAdmin):
    """A table that people look at and services write, superusers included.

    ``identities`` are the columns that a search compares with what was typed, as a whole.
    """

    actions: Any = None
    change_list_template = "admin/sessions_app/newest_first.html"
    list_per_page = 50
    ordering: ClassVar[Any] = ("-pk",)
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    sortable_by: ClassVar[Any] = ()
    identities: tuple[str, ...] = ("pk",)
    search_help_text = "The whole id"

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[pages.Keyset]:
        return pages.Keyset

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return self.identities

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> "tuple[QuerySet[Any], bool]":
        """By equality, which every database answers from the index."""
        term = clean(search_term).strip()
        if not term:
            return queryset, False
        wanted = Q()
        for column in self.identities:
            wanted |= Q(**{column: term})
        return queryset.filter(wanted), False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def short(text: str) -> str:
    """The beginning of a text, on one line; whoever renders it escapes it."""
    line = " ".join(text[: 2 * _SHORT].split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def folded(value: Any) -> SafeString | str:
    """JSON that opens with a click."""
    if value is None:
        return NOTHING
    whole = json.dumps(value, indent=2, ensure_ascii=False)
    flat = short(json.dumps(value, ensure_ascii=False))
    return format_html("<details><summary>{}</summary><pre>{}</pre></details>", flat, whole)


def link(row: Model, text: str = "") -> SafeString:
    """To the page of the row."""
    meta = row._meta  # noqa: SLF001
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', address, text or str(row.pk))


def list_link(model: type[Model], text: str, **where: str) -> SafeString:
    """To the list of the model's rows with these values."""
    meta = model._meta  # noqa: SLF001
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", query=where)
    return format_html('<a href="{}">{}</a>', address, text)


def _cell(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> SafeString:
    """An HTML table; every cell is escaped unless it is safe already."""
    cells = [format_html_join("", "<td>{}</td>", ((_cell(cell),) for cell in row)) for row in rows]
    return format_html(
        "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>",
        format_html_join("", "<th>{}</th>", ((name,) for name in head)),
        format_html_join("", "<tr>{}</tr>", ((row,) for row in cells)),
    )
