"""Pages by position: the cursor names the last row that was given, so that new rows move nothing."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeVar

from django.db.models import Model, Q, QuerySet

from schema.text import clean
from sessions_app.api import bodies, problems

M = TypeVar("M", bound=Model)
Value = datetime | int | str

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MICROSECONDS: Final = 2**53
_LONGEST: Final = 500


@dataclass(frozen=True, kw_only=True)
class Order:
    """How a list is sorted. The last column is unique; all columns run the same way."""

    name: str
    """Which list: a cursor of another one is refused."""

    columns: tuple[str, ...]
    direction: Literal["asc", "desc"]

    def sort(self, rows: "QuerySet[M]") -> "QuerySet[M]":
        sign = "-" if self.direction == "desc" else ""
        return rows.order_by(*(sign + column for column in self.columns))


@dataclass(frozen=True, kw_only=True)
class Page:
    rows: list[Any]
    next: str | None

    def shape(self, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"results": results, "next": self.next}


def cut(rows: "QuerySet[M]", *, order: Order, query: bodies.PageQuery) -> Page:
    """One page of ``rows`` after the cursor; never counts. Raises InvalidCursor."""
    if query.cursor is not None:
        rows = rows.filter(_beyond(order, _decode(query.cursor, order=order)))
    found = list(order.sort(rows)[: query.limit + 1])
    more = len(found) > query.limit
    found = found[: query.limit]
    return Page(rows=found, next=_encode(found[-1], order=order) if more else None)


def _beyond(order: Order, position: Sequence[Value]) -> Q:
    """Rows after the position. The first column bounds them all, so that an index range is read."""
    comparison = "lt" if order.direction == "desc" else "gt"
    beyond = Q()
    equal = Q()
    for column, value in zip(order.columns, position, strict=True):
        beyond |= equal & Q(**{f"{column}__{comparison}": value})
        equal &= Q(**{column: value})
    return Q(**{f"{order.columns[0]}__{comparison}e": position[0]}) & beyond


def _encode(row: Model, *, order: Order) -> str:
    values = [_plain(getattr(row, column)) for column in order.columns]
    text = json.dumps([order.name, order.direction, *values], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _plain(value: Value) -> int | str:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    return value


def _decode(cursor: str, *, order: Order) -> list[Value]:
    if len(cursor) > _LONGEST:
        raise problems.InvalidCursor
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        name, direction, *values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError):
        raise problems.InvalidCursor from None
    fits = (name, direction, len(values)) == (order.name, order.direction, len(order.columns))
    if not fits:
        raise problems.InvalidCursor
    return [_reader(column)(value) for column, value in zip(order.columns, values, strict=True)]


def _reader(column: str) -> Callable[[object], Value]:
    if column.endswith("_at"):
        return _time
    return _position if column.endswith("seq") else _identity


def _time(value: object) -> datetime:
    if type(value) is not int or not 0 <= value <= _MAX_MICROSECONDS:
        raise problems.InvalidCursor
    return _EPOCH + timedelta(microseconds=value)


def _position(value: object) -> int:
    if type(value) is not int or not 0 <= value <= bodies.MAX_SEQ:
        raise problems.InvalidCursor
    return value


def _identity(value: object) -> str:
    if not isinstance(value, str) or clean(value) != value:
        raise problems.InvalidCursor
    return value
