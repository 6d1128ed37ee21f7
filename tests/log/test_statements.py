"""Statements that are compiled once do what the ORM would do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Count, QuerySet

from sessions_app.models import MessagePart, Session, SessionInput, Tombstone, statements
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases, pytest.mark.rows_of_its_own]


def test_rows_without_number_are_inserted() -> None:
    rows = [Tombstone(id=f"ses_{number}", deleted_at=world.NOW) for number in range(3 * statements.BATCH + 1)]

    statements.insert(*rows)

    assert Tombstone.objects.count() == len(rows)


def test_what_is_read_equals_what_the_orm_reads() -> None:
    session_id = world.session(title="Größe \u2603")
    for number in range(3):
        world.prompt(session_id, f"Prompt {number}", now=world.after(number))

    assert (
        statements.fetch(Session, {"pk": session_id})[0].__dict__.keys()
        == world.row(session_id).__dict__.keys()
    )
    for row in statements.fetch(SessionInput, {"session_id": session_id}, order_by="-admitted_seq"):
        stored = SessionInput.objects.get(pk=row.pk)
        assert {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields} == {
            f.attname: getattr(stored, f.attname) for f in stored._meta.concrete_fields
        }


def test_conditions_mean_what_they_mean_to_django() -> None:
    session_id, other = world.session(), world.session()
    first, second, third = (world.prompt(session_id, now=world.after(number)) for number in range(3))
    world.prompt(other)
    SessionInput.objects.filter(pk=first).update(promoted_seq=9)

    def found(**conditions: object) -> list[str]:
        where = {"session_id": session_id, **conditions}
        ours = [row.pk for row in statements.fetch(SessionInput, where, order_by="admitted_seq")]
        given = {
            key if value is not None else f"{key}__isnull": value if value is not None else True
            for key, value in where.items()
        }
        assert ours == list(
            SessionInput.objects.filter(**given).order_by("admitted_seq").values_list("pk", flat=True)
        )
        assert statements.exists(SessionInput, where) == bool(ours)
        return ours

    assert found(promoted_seq=None) == [second, third]
    assert found(promoted_seq__isnull=False) == [first]
    assert found(promoted_seq__isnull=True) == [second, third]
    assert found(pk__in=(first, third)) == [first, third]
    assert found(pk__in=()) == []
    assert found(created_at__gt=world.NOW, wake=True) == [second, third]
    assert found(created_at__gte=world.NOW, created_at__lte=world.NOW + timedelta(seconds=1)) == [
        first,
        second,
    ]


def test_a_change_tells_how_many_rows_it_changed_and_touches_no_other() -> None:
    session_id, other = world.session(), world.session()
    for each in (session_id, other):
        world.prompt(each)
    before = world.everything_of(other)

    assert (
        statements.update(SessionInput, {"session_id": session_id, "promoted_seq": None}, {"wake": False})
        == 1
    )
    assert statements.update(SessionInput, {"session_id": session_id, "wake": True}, {"promoted_seq": 3}) == 0
    statements.delete(SessionInput, {"session_id": session_id})

    assert not SessionInput.objects.filter(session_id=session_id).exists()
    assert world.everything_of(other) == before
    assert statements.fetch_columns(MessagePart, ("id", "kind"), {"session_id": other}) == []


def test_a_query_over_several_tables_is_put_together_once_for_few_numbers_of_ids() -> None:
    ids = [world.session() for _ in range(6)]
    for session_id in ids:
        world.prompt(session_id)
    widths: list[int] = []

    def prompts_of(some: Sequence[str]) -> "QuerySet[SessionInput, Any]":
        widths.append(len(some))
        rows = SessionInput.objects.filter(session_id__in=some, wake=True)
        return rows.values_list("session_id").annotate(count=Count("pk"))

    for count in (0, 1, 2, 3, 4, 5, 6, 6, 3):
        found = statements.rows_of(prompts_of, ids[:count])
        assert sorted(found) == sorted((session_id, 1) for session_id in ids[:count])

    assert widths == [1, 2, 4, 8]


def test_a_row_comes_with_what_it_refers_to() -> None:
    free, held = world.session(), world.owned().session_id

    found = {row.pk: row for row in statements.fetch_related(Session, "owner", (free, held))}

    for row in Session.objects.select_related("owner").filter(pk__in=(free, held)):
        ours = found.pop(row.pk)
        assert ours.owner == row.owner
        for mine, stored in ((ours, row), (ours.owner, row.owner)):
            if stored is not None:
                names = [field.attname for field in stored._meta.concrete_fields]
                assert [getattr(mine, name) for name in names] == [getattr(stored, name) for name in names]
    assert not found
