"""The queue's broker, on both databases."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django_q.models import OrmQ

from sessions_app.execution import broker
from sessions_app.execution.broker import SafeOrmBroker

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def queue() -> SafeOrmBroker:
    return SafeOrmBroker(list_key="holdfast")


def fill(queue: SafeOrmBroker, count: int) -> list[int]:
    return [queue.enqueue(f"payload {number}") for number in range(count)]


def locked_until(task_id: int) -> datetime:
    lock: datetime = OrmQ.objects.get(pk=task_id).lock
    return lock


def test_tasks_are_delivered_in_the_order_in_which_they_came(queue) -> None:
    ids = fill(queue, 30)
    OrmQ.objects.filter(pk=ids[0]).update(payload="moved in the heap, not in the queue")

    assert [task_id for _ in range(2) for task_id, _ in queue.dequeue()] == ids


def test_a_delivered_task_is_not_delivered_again_before_its_lock_ends(queue) -> None:
    [task] = fill(queue, 1)
    assert [task_id for task_id, _ in queue.dequeue()] == [task]

    assert queue.dequeue() == []
    assert locked_until(task) > timezone.now() + timedelta(seconds=50)

    OrmQ.objects.update(lock=timezone.now())
    assert [task_id for task_id, _ in queue.dequeue()] == [task]


def test_tasks_of_another_queue_are_left_alone(queue) -> None:
    OrmQ.objects.create(key="other", payload="x", lock=timezone.now())

    assert queue.dequeue() == []


def test_of_many_takers_at_once_each_task_goes_to_exactly_one(queue) -> None:
    ids = fill(queue, 200)
    start = threading.Barrier(4)

    def take() -> list[int]:
        start.wait()
        taken: list[int] = []
        try:
            while batch := queue.dequeue():
                taken += [task_id for task_id, _ in batch]
        finally:
            connection.close()
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [task_id for each in [pool.submit(take) for _ in range(4)] for task_id in each.result()]

    # A taker may find an empty queue while others still hold rows; what is left is delivered once, too.
    taken += [task_id for _ in range(10) for task_id, _ in queue.dequeue()]
    assert sorted(taken) == ids


def test_an_acknowledged_task_is_gone(queue) -> None:
    first, second = fill(queue, 2)

    queue.acknowledge(first)

    assert list(OrmQ.objects.values_list("pk", flat=True)) == [second]


def test_a_task_that_is_given_back_is_delivered_after_the_stated_time(queue) -> None:
    first, second = fill(queue, 2)
    queue.dequeue()

    queue.give_back(first)
    queue.give_back(second, after=timedelta(seconds=5))

    assert [task_id for task_id, _ in queue.dequeue()] == [first]
    assert timedelta(seconds=3) < locked_until(second) - timezone.now() <= timedelta(seconds=5)


def test_a_task_is_stored_with_the_transaction_that_enqueues_it_or_not_at_all(queue) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        fill(queue, 1)
        raise ZeroDivisionError

    assert not OrmQ.objects.exists()


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The next statements on the queue that fail; the test takes them off the list as they happen."""
    failures: list[str] = []
    original = QuerySet._fetch_all

    def fetch(rows: QuerySet[OrmQ]) -> None:
        if rows.model is OrmQ and failures:
            raise OperationalError(failures.pop())
        original(rows)

    monkeypatch.setattr(QuerySet, "_fetch_all", fetch)
    monkeypatch.setattr(broker, "OUTAGE_PAUSE_SECONDS", 0.0)
    return failures


def test_a_database_error_while_polling_costs_one_poll_and_no_task(queue, outage) -> None:
    ids = fill(queue, 2)
    outage.append("server closed the connection unexpectedly")

    assert queue.dequeue() == []
    assert [task_id for task_id, _ in queue.dequeue()] == ids


def test_an_acknowledgement_survives_a_short_outage(queue, monkeypatch) -> None:
    [task] = fill(queue, 1)
    monkeypatch.setattr(broker, "OUTAGE_PAUSE_SECONDS", 0.0)
    failures = [OperationalError("gone"), OperationalError("gone")]
    delete = SafeOrmBroker.delete

    def flaky(self: SafeOrmBroker, task_id: int) -> None:
        if failures:
            raise failures.pop()
        delete(self, task_id)

    monkeypatch.setattr(SafeOrmBroker, "delete", flaky)

    queue.acknowledge(task)

    assert not OrmQ.objects.exists()


def test_an_acknowledgement_that_never_gets_through_raises_nothing_and_leaves_the_task(
    queue, monkeypatch
) -> None:
    [task] = fill(queue, 1)
    monkeypatch.setattr(broker, "OUTAGE_PAUSE_SECONDS", 0.0)

    def away(self: SafeOrmBroker, task_id: int) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(SafeOrmBroker, "delete", away)

    queue.acknowledge(task)

    assert OrmQ.objects.filter(pk=task).exists()
