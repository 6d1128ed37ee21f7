"""The loops of the cluster's children, without processes."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django_q.queues import Queue
from django_q.signing import SignedPackage

from sessions_app.execution import children
from sessions_app.execution.flag import Flag
from tests.support.waiting import until


class ScriptedBroker:
    """Delivers what it is given, and remembers what became of it."""

    def __init__(self, *batches: list[tuple[int, str]]) -> None:
        self.batches = list(batches)
        self.acknowledged: list[int] = []
        self.given_back: list[tuple[int, timedelta]] = []

    def dequeue(self) -> list[tuple[int, str]]:
        return self.batches.pop(0) if self.batches else []

    def acknowledge(self, task_id: int) -> None:
        self.acknowledged.append(task_id)

    def give_back(self, task_id: int, *, after: timedelta = timedelta(0)) -> None:
        self.given_back.append((task_id, after))


def payload(name: str) -> str:
    return str(SignedPackage.dumps({"id": name, "name": name, "func": "f", "args": (), "kwargs": {}}))


@pytest.fixture
def tasks() -> Any:
    queue = Queue(maxsize=2)
    yield queue
    queue.cancel_join_thread()
    queue.close()


def test_at_the_stop_a_pusher_before_a_full_queue_gives_back_the_rest_and_ends(tasks) -> None:
    stop = Flag()
    broker = ScriptedBroker([(number, payload(str(number))) for number in range(5)])
    pusher = threading.Thread(target=children.push, kwargs={"tasks": tasks, "stop": stop, "broker": broker})
    pusher.start()
    until(lambda: tasks.qsize() == 2, what="a full queue")

    stop.set()

    pusher.join(timeout=2)
    assert not pusher.is_alive()
    assert [task_id for task_id, _ in broker.given_back] == [2, 3, 4]


def test_a_payload_signed_with_another_key_is_dropped_and_the_next_one_is_delivered(tasks) -> None:
    stop = Flag()
    broker = ScriptedBroker([(1, payload("a") + "x"), (2, payload("b"))])
    pusher = threading.Thread(target=children.push, kwargs={"tasks": tasks, "stop": stop, "broker": broker})
    pusher.start()

    assert tasks.get(timeout=5)["ack_id"] == 2

    stop.set()
    pusher.join(timeout=2)
    assert broker.acknowledged == [1]


@pytest.mark.parametrize(("stopping", "after"), [(False, children.REDELIVERY), (True, timedelta(0))])
def test_only_what_was_done_is_acknowledged_and_the_rest_comes_again(tasks, stopping, after) -> None:
    stop = Flag()
    if stopping:
        stop.set()
    broker = ScriptedBroker()
    monitor = threading.Thread(
        target=children.acknowledge, kwargs={"results": tasks, "stop": stop, "broker": broker}
    )
    monitor.start()

    tasks.put({"ack_id": 1, "success": True, "result": None})
    tasks.put({"ack_id": 2, "success": False, "result": "no room"})
    tasks.put("STOP")

    monitor.join(timeout=5)
    assert broker.acknowledged == [1]
    assert broker.given_back == [(2, after)]


def test_a_flag_is_seen_by_those_who_look_before_and_after_and_can_be_raised_twice() -> None:
    flag = Flag()
    assert not flag.is_set()
    waiter = threading.Thread(target=flag.wait)
    waiter.start()

    flag.set()
    flag.set()

    waiter.join(timeout=2)
    assert not waiter.is_alive()
    assert flag.is_set()
    assert flag.wait(timeout=1)
