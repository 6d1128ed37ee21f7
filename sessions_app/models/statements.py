"""Statements on one table, compiled once: what short transactions would spend most of their time on.

The ORM builds and compiles its SQL anew for every call, which takes several times as long as the database
needs to run it. Here a statement of one shape (table, columns, conditions) is put together once; values go
through the same fields, and rows come back as instances of the same models.

Conditions are written as in Django: ``{"session_id": ..., "ended_at": None, "state__in": (...)}`` with
``gt``, ``gte``, ``lte``, ``in`` and ``isnull``. None means NULL.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

from django.db import connection, models

M = TypeVar("M", bound=models.Model)
Where = Mapping[str, Any]

BATCH: Final = 250
"""Rows of one statement: databases bound the number of values."""

_COMPARISONS: Final = {"": "=", "gt": ">", "gte": ">=", "lte": "<="}


def insert(*rows: models.Model) -> None:
    """Insert rows of one table, many by one statement. An automatic id is given by the database and not read back.

    Raises django.db.IntegrityError.
    """
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        _change(_insert(type(rows[0]), len(some)), _values(some))


def insert_numbered(row: models.Model) -> int:
    """Insert one row whose id the database gives; answers the id."""
    table = type(row)
    assert table._meta.auto_field is not None
    returning = f" RETURNING {_quoted(table._meta.auto_field.column)}"
    number: int = _rows(_insert(table, 1) + returning, _values([row]))[0][0]
    return number


def update(table: type[models.Model], where: Where, values: Mapping[str, Any]) -> int:
    """Change the rows that fit; answers how many they were."""
    given = [_field(table, name).get_db_prep_save(value, connection) for name, value in values.items()]
    sql = _update(table, tuple(values)) + _where(table, _shape(where))
    return _change(sql, [*given, *_bound(table, where)])


def delete(table: type[models.Model], where: Where) -> None:
    """Delete the rows that fit, and nothing that refers to them."""
    _change(_delete(table) + _where(table, _shape(where)), _bound(table, where))


def fetch(
    table: type[M],
    where: Where,
    *,
    order_by: str = "",
    limit: int | None = None,
    lock: bool = False,
) -> list[M]:
    """The rows that fit, whole. ``order_by`` is a column, descending with a minus before it.

    ``lock``: until the transaction ends nobody else changes them (SQLite needs no lock for that, where a
    writing transaction is alone).
    """
    names = _all(table)
    sql = _select(table, names) + _where(table, _shape(where)) + _tail(table, order_by, limit)
    if lock and connection.features.has_select_for_no_key_update:
        sql += " FOR NO KEY UPDATE"
    readers = _readers(table, names, connection.vendor)
    found = _rows(sql, _bound(table, where))
    return [table.from_db(connection.alias, names, _read(row, readers)) for row in found]


def fetch_columns(
    table: type[models.Model], names: tuple[str, ...], where: Where, *, order_by: str = ""
) -> list[Any]:
    """Of the rows that fit these columns alone, as named tuples: a long list costs half of what rows cost."""
    sql = _select(table, names) + _where(table, _shape(where)) + _tail(table, order_by, None)
    readers = _readers(table, names, connection.vendor)
    make = _tuple_of(names)
    return [make(*_read(row, readers)) for row in _rows(sql, _bound(table, where))]


def first(table: type[M], where: Where, *, order_by: str = "", lock: bool = False) -> M | None:
    found = fetch(table, where, order_by=order_by, limit=1, lock=lock)
    return found[0] if found else None


def rows_of(build: Callable[[Sequence[str]], "models.QuerySet[Any, Any]"], ids: Sequence[str]) -> list[Any]:
    """The rows of ``build(ids)``, a query whose only values from outside are these ids, as the driver gives them.

    For what one table does not hold: the ORM puts it together, once for each number of ids.
    """
    if not ids:
        return []
    # An id that stands there several times changes nothing, so that a few numbers of ids do for all.
    width = 1 << (len(ids) - 1).bit_length()
    padded = [*ids, *[ids[-1]] * (width - len(ids))]
    sql, values = _built(build, width, connection.vendor)
    return _rows(sql, [padded[value.at] if isinstance(value, _Place) else value for value in values])


def fetch_related(table: type[M], name: str, ids: Sequence[str]) -> list[M]:
    """The rows of these ids, whole, each with the row that its foreign key ``name`` refers to."""
    key: Any = _field(table, name)
    own, other = _all(table), _all(key.related_model)
    readers = _readers(table, own, connection.vendor)
    other_readers = _readers(key.related_model, other, connection.vendor)
    found = []
    for values in rows_of(_with_related(table, name), ids):
        row = table.from_db(connection.alias, own, _read(values[: len(own)], readers))
        there = getattr(row, key.attname) is not None
        rest = values[len(own) :]
        key.set_cached_value(
            row,
            key.related_model.from_db(connection.alias, other, _read(rest, other_readers)) if there else None,
        )
        found.append(row)
    return found


def exists(table: type[models.Model], where: Where) -> bool:
    return bool(_rows(_probe(table) + _where(table, _shape(where)) + " LIMIT 1", _bound(table, where)))


def _rows(sql: str, values: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        found: list[Any] = cursor.fetchall()
    return found


def _change(sql: str, values: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        count: int = cursor.rowcount
    return count


def _values(rows: Sequence[models.Model]) -> list[Any]:
    fields = _inserted(type(rows[0]))
    return [field.get_db_prep_save(getattr(row, name), connection) for row in rows for name, field in fields]


# Shapes: what a statement is made of, values left out


class _Place(str):
    """Stands in a compiled statement where an id is put."""

    __slots__ = ("at",)
    at: int


@cache
def _built(
    build: Callable[[Sequence[str]], "models.QuerySet[Any, Any]"], width: int, vendor: str
) -> tuple[str, tuple[Any, ...]]:
    places = [_Place(f"place {number}") for number in range(width)]
    for number, place in enumerate(places):
        place.at = number
    sql, values = build(places).query.sql_with_params()
    found = sum(isinstance(value, _Place) for value in values)
    assert found % width == 0 < found, "every id must still be seen as one in the statement"
    return sql, tuple(values)


@cache
def _with_related(table: type[models.Model], name: str) -> Callable[[Sequence[str]], Any]:
    return lambda ids: table._default_manager.select_related(name).filter(pk__in=ids)


def _shape(where: Where) -> tuple[tuple[str, int], ...]:
    """Each condition with the number of values it binds."""
    return tuple((key, _width(key, value)) for key, value in where.items())


def _width(key: str, value: Any) -> int:
    if value is None or key.endswith("__isnull"):
        return -1 if value is False else 0
    return len(value) if key.endswith("__in") else 1


def _bound(table: type[models.Model], where: Where) -> list[Any]:
    values: list[Any] = []
    for key, value in where.items():
        name, _, lookup = key.partition("__")
        if value is None or lookup == "isnull":
            continue
        field = _field(table, name)
        each = value if lookup == "in" else (value,)
        values += [field.get_db_prep_value(one, connection) for one in each]
    return values


@cache
def _where(table: type[models.Model], shape: tuple[tuple[str, int], ...]) -> str:
    return " WHERE " + " AND ".join(_condition(table, *condition) for condition in shape)


def _condition(table: type[models.Model], key: str, width: int) -> str:
    name, _, lookup = key.partition("__")
    column = _quoted(_field(table, name).column)
    if width < 1 and lookup != "in":
        return f"{column} IS NOT NULL" if width else f"{column} IS NULL"
    if lookup == "in":
        return f"{column} IN ({', '.join(['%s'] * width)})" if width else "1 = 0"
    return f"{column} {_COMPARISONS[lookup]} %s"


@lru_cache(maxsize=BATCH)
def _insert(table: type[models.Model], count: int) -> str:
    columns = [_quoted(field.column) for _, field in _inserted(table)]
    row = f"({', '.join(['%s'] * len(columns))})"
    return f"INSERT INTO {_name(table)} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"  # noqa: S608


@cache
def _update(table: type[models.Model], names: tuple[str, ...]) -> str:
    columns = ", ".join(f"{_quoted(_field(table, name).column)} = %s" for name in names)
    return f"UPDATE {_name(table)} SET {columns}"  # noqa: S608


@cache
def _delete(table: type[models.Model]) -> str:
    return f"DELETE FROM {_name(table)}"  # noqa: S608


@cache
def _select(table: type[models.Model], names: tuple[str, ...]) -> str:
    columns = ", ".join(_quoted(_field(table, name).column) for name in names)
    return f"SELECT {columns} FROM {_name(table)}"  # noqa: S608


@cache
def _probe(table: type[models.Model]) -> str:
    return f"SELECT 1 FROM {_name(table)}"  # noqa: S608


@cache
def _tail(table: type[models.Model], order_by: str, limit: int | None) -> str:
    tail = ""
    if order_by:
        column = _quoted(_field(table, order_by.removeprefix("-")).column)
        tail = f" ORDER BY {column}{' DESC' if order_by.startswith('-') else ''}"
    return tail if limit is None else f"{tail} LIMIT {limit}"


# Tables and columns


@cache
def _inserted(table: type[models.Model]) -> tuple[tuple[str, Any], ...]:
    automatic = table._meta.auto_field
    return tuple((field.attname, field) for field in table._meta.concrete_fields if field is not automatic)


@cache
def _field(table: type[models.Model], name: str) -> Any:
    """The field of that name, column or ``pk``."""
    if name == "pk":
        return table._meta.pk
    return next(field for field in table._meta.concrete_fields if name in (field.name, field.attname))


@cache
def _all(table: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in table._meta.concrete_fields)


@cache
def _tuple_of(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)


@cache
def _readers(
    table: type[models.Model], names: tuple[str, ...], vendor: str
) -> tuple[tuple[int, Any, Any], ...]:
    """What turns some values, by position, into Python's."""
    columns = [_field(table, name).get_col(table._meta.db_table) for name in names]
    return tuple(
        (index, convert, column)
        for index, column in enumerate(columns)
        for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection))
    )


def _read(row: Sequence[Any], readers: Sequence[tuple[int, Any, Any]]) -> list[Any]:
    values = list(row)
    for index, convert, column in readers:
        values[index] = convert(values[index], column, connection)
    return values


@cache
def _name(table: type[models.Model]) -> str:
    return _quoted(table._meta.db_table)


def _quoted(name: str | None) -> str:
    assert name
    return f'"{name}"'
