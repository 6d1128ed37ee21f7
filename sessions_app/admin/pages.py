"""Pages of lists by position: a table of any size costs the same on every page, and is never counted."""

from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from schema.text import clean

BEFORE: Final = "before"
"""The row that the page before ended with: its values of the columns that the list is ordered by."""


class Keyset(ChangeList):
    """Newest first. ``older`` is the query of the following page, empty on the last one."""

    older = ""
    newest = ""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> "QuerySet[Any]":
        # Neither a filter nor part of the links of filters: those begin at the newest row.
        self.params.pop(BEFORE, None)
        self.filter_params.pop(BEFORE, None)
        return super().get_queryset(request, exclude_parameters)

    def get_results(self, request: HttpRequest) -> None:
        columns = [str(column).removeprefix("-") for column in self.queryset.query.order_by]
        rows = self.queryset
        if BEFORE in request.GET:
            rows = rows.filter(_before(self.model, columns, request.GET.getlist(BEFORE)))
            self.newest = self.get_query_string()
        found = list(rows[: self.list_per_page + 1])
        if len(found) > self.list_per_page:
            found.pop()
            self.older = self.get_query_string(
                {BEFORE: [_plain(getattr(found[-1], name)) for name in columns]}
            )
        self.result_list: Any = found
        self.result_count = len(found)
        self.full_result_count = None
        self.show_full_result_count = False
        self.can_show_all = self.multi_page = False
        # Without a count nobody knows that there is nothing to act on.
        self.show_admin_actions = True


def _before(model: type[Model], columns: list[str], values: list[str]) -> Q:
    """Rows behind that position, all columns running downwards."""
    if len(values) != len(columns):
        raise IncorrectLookupParameters
    behind, equal = Q(), Q()
    for name, text in zip(columns, values, strict=True):
        value = _read(model, name, text)
        behind |= equal & Q(**{f"{name}__lt": value})
        equal &= Q(**{name: value})
    return behind


def _read(model: type[Model], name: str, text: str) -> Any:
    meta = model._meta  # noqa: SLF001
    field: Any = meta.pk if name == "pk" else meta.get_field(name)
    try:
        value = field.to_python(clean(text))
    except ValidationError as invalid:
        raise IncorrectLookupParameters from invalid
    if value is None:
        raise IncorrectLookupParameters
    return value


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def words(column: str, *choices: str, title: str = "") -> type[admin.SimpleListFilter]:
    """A filter by one of these words. Django's own asks the whole table which there are."""

    class Words(admin.SimpleListFilter):
        parameter_name = column

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(choice, choice) for choice in choices]

        def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
            return queryset.filter(**{column: self.value()}) if self.value() in choices else queryset

    Words.title = title or column.replace("_", " ")
    return Words
