"""What a pass costs: in proportion to what is lost, whatever the number of sessions at rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery import discovery, service
from recovery.models import RecoveryClaim
from sessions_app.models import Session, Worker
from tests.recovery import crowds, losses
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases, pytest.mark.rows_of_its_own]

HANDFUL: Final = 8
AT_REST: Final = 1000
FEW, MANY = 10, 40


@pytest.fixture(autouse=True)
def policy(settings: Any) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = "continue"


@dataclass
class Cost:
    """What one pass made the database do."""

    statements: int = 0
    rows: int = 0
    """Read from it, whatever was made of them."""


def sweep() -> Cost:
    """The cost of a whole pass."""
    me, cost = world.worker().pk, Cost()
    with CaptureQueriesContext(connection) as captured, counted(cost):
        losses.sweep(by=me)
    cost.statements = sum(
        query["sql"].lstrip().upper().startswith(VERBS) for query in captured.captured_queries
    )
    return cost


@contextmanager
def counted(cost: Cost) -> Iterator[None]:
    """Count the rows that are fetched while the block runs."""
    cursor = connection.cursor

    def counting() -> Counting:
        return Counting(cursor(), cost)

    connection.cursor = counting  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        connection.cursor = cursor  # type: ignore[method-assign]


class Counting:
    """A cursor that adds up what is fetched."""

    def __init__(self, cursor: Any, cost: Cost) -> None:
        self._cursor = cursor
        self._cost = cost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def __enter__(self) -> "Counting":
        self._cursor.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._cursor.__exit__(*error)

    def __iter__(self) -> Iterator[Any]:
        for row in self._cursor:
            self._cost.rows += 1
            yield row

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        self._cost.rows += row is not None
        return row

    def fetchmany(self, *size: int) -> Any:
        return self._took(self._cursor.fetchmany(*size))

    def fetchall(self) -> Any:
        return self._took(self._cursor.fetchall())

    def _took(self, rows: Any) -> Any:
        self._cost.rows += len(rows)
        return rows


VERBS: Final = ("SELECT", "UPDATE", "INSERT", "DELETE")


def killed() -> str:
    """A worker whose death is established already."""
    return world.worker(dead_at=world.NOW, death="proved").pk


def test_a_pass_that_finds_nothing_costs_a_handful_of_statements() -> None:
    crowds.at_rest(AT_REST, user_id=world.user())

    cost = sweep()

    assert cost.statements <= HANDFUL
    assert cost.rows <= HANDFUL


def test_living_owners_cost_no_statement_each() -> None:
    user_id = world.user()
    crowds.lost(MANY, user_id=user_id, owner=world.worker().pk)

    assert sweep().statements <= HANDFUL
    assert not RecoveryClaim.objects.exists()


def test_each_orphan_costs_the_same_statements_and_rows_whatever_else_is_there() -> None:
    user_id = world.user()
    costs: list[Cost] = []
    for count, at_rest in ((FEW, 0), (MANY, AT_REST)):
        world.forget_queue()
        crowds.at_rest(at_rest, user_id=user_id)
        lost = crowds.lost(count, user_id=user_id, owner=killed())
        costs.append(sweep())
        assert RecoveryClaim.objects.filter(session_id__in=lost).count() == count
        forget_everything()

    for what, most in (("statements", 50), ("rows", 50)):
        few, many = (getattr(cost, what) for cost in costs)
        each = (many - few) / (MANY - FEW)
        assert each == int(each), f"every orphan costs the same {what}"
        assert 0 < each <= most
        assert few - FEW * each <= HANDFUL


def forget_everything() -> None:
    RecoveryClaim.objects.all().delete()
    for relation in Session._meta.related_objects:
        model = relation.related_model
        assert isinstance(model, type)
        model._default_manager.all().delete()
    Session.objects.all().delete()


def test_the_search_for_orphans_reads_partial_indexes_and_not_whole_tables() -> None:
    user_id = world.user()
    crowds.at_rest(AT_REST, user_id=user_id)
    lost = crowds.lost(FEW, user_id=user_id, owner=killed())
    crowds.analyze()

    plans = explained()

    assert [each.session_id for each in discovery.find_orphans(now=losses.LATER)] == lost
    for table, index in (
        ("sessions_app_session", "session_owned"),
        ("sessions_app_providerattempt", "attempt_unsettled"),
        ("sessions_app_messagepart", "part_unfinished"),
        ("sessions_app_sessionmessage", "message_unfinished"),
    ):
        assert any(index in plan for plan in plans), (index, plans)
        assert not any(reads_all_of(table, plan) for plan in plans), plans


def reads_all_of(table: str, plan: str) -> bool:
    """Whether the plan goes through a whole table."""
    if connection.vendor == "sqlite":
        return any(f"SCAN {table}" in line and "INDEX" not in line for line in plan.splitlines())
    return f"Seq Scan on {table}" in plan


def explained() -> list[str]:
    """The plan of every statement of the search, in the database's own words."""
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with CaptureQueriesContext(connection) as captured:
        discovery.find_orphans(now=losses.LATER)
    plans = []
    with connection.cursor() as cursor:
        for query in captured.captured_queries:
            cursor.execute(explain + query["sql"])
            plans.append("\n".join(str(row) for row in cursor.fetchall()))
    return plans


@pytest.mark.django_db(transaction=True)
def test_all_orphans_among_many_sessions_are_recovered_in_one_pass(tmp_path: Path) -> None:
    user_id = world.user()
    crowds.at_rest(AT_REST, user_id=user_id)
    owner = crowds.killed_worker(tmp_path)
    lost = crowds.lost(100, user_id=user_id, owner=owner.pk)
    me = world.worker().pk

    outcomes = [each.outcome for each in service.recover_all(worker_id=me, now=losses.LATER)]

    assert outcomes == ["claimed"] * len(lost)
    assert Worker.objects.get(pk=owner.pk).death == "proved"
    assert discovery.find_orphans(now=losses.LATER) == []
