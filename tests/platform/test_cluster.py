"""What happens to the worker processes when one of them, or the database, dies.

One test for each row of the table of django-q2's faults: each kills the very process.
"""

import signal
from datetime import UTC, datetime
from typing import LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.platform.conftest import CLUSTER_ENVIRON, ClusterUnderTest
from tests.support import servers
from tests.support.processes import Instance
from tests.support.requirements import requires
from tests.support.waiting import until

CHILD_LOST = 70


def test_a_busy_worker_that_is_killed_ends_the_cluster_and_its_task_runs_again_after_the_restart(
    cluster: ClusterUnderTest,
) -> None:
    cluster.start(workers=1)
    cluster.enqueue("busy", "a", arguments=(30,))
    cluster.wait_until_done("a", event="began")

    cluster.instance.kill("worker")

    assert cluster.wait_for_exit() == CHILD_LOST
    cluster.start(workers=1)
    until(lambda: cluster.names("began") == ["a", "a"], what="the task began again")


@pytest.mark.parametrize("which", [0, 1])
def test_an_idle_worker_that_is_killed_ends_the_cluster_instead_of_stopping_it_silently(
    cluster: ClusterUnderTest, which: int
) -> None:
    """One of the two holds the queue's read lock; whichever it is, tasks run after the restart."""
    cluster.start(workers=2)
    victim = cluster.instance.processes("worker")[which]

    cluster.instance.kill_process(victim)

    assert cluster.wait_for_exit() == CHILD_LOST
    cluster.start(workers=2)
    cluster.enqueue("run", "a", "b", "c")
    cluster.wait_until_done("a", "b", "c")


@pytest.mark.parametrize("role", ["monitor", "pusher"])
def test_a_monitor_or_pusher_that_is_killed_ends_the_cluster_and_no_task_runs_twice(
    cluster: ClusterUnderTest, role: str
) -> None:
    cluster.start()
    cluster.enqueue("run", "before")
    until(lambda: cluster.names("ran") and not cluster.queued(), what="the first task acknowledged")

    cluster.instance.kill(role)

    assert cluster.wait_for_exit() == CHILD_LOST
    cluster.start()
    cluster.enqueue("run", "after")
    until(
        lambda: "after" in cluster.names("ran") and not cluster.queued(), what="the second task acknowledged"
    )
    assert cluster.names("ran") == ["before", "after"]


def test_when_a_worker_is_killed_the_others_release_their_sessions_before_they_go(
    cluster: ClusterUnderTest,
) -> None:
    cluster.start(workers=2)
    victim, survivor = cluster.instance.processes("worker")

    cluster.instance.kill_process(victim)

    assert cluster.wait_for_exit() == CHILD_LOST
    stopped = [line[-1] for line in cluster.journal if line[0] == "stopped"]
    assert stopped == [str(survivor.pid)]


def test_a_killed_sentinel_takes_the_whole_cluster_with_it(cluster: ClusterUnderTest) -> None:
    cluster.start()

    cluster.instance.kill("sentinel")

    assert cluster.wait_for_exit() == CHILD_LOST


def test_a_killed_main_process_takes_the_whole_cluster_with_it(cluster: ClusterUnderTest) -> None:
    cluster.start()

    cluster.instance.kill("cluster")

    assert cluster.wait_for_exit() == -signal.SIGKILL


@pytest.mark.parametrize("role", ["sentinel", "worker", "monitor", "pusher"])
def test_sigterm_to_a_child_alone_is_ignored(cluster: ClusterUnderTest, role: str) -> None:
    cluster.start(workers=1)

    pid = cluster.instance.kill(role, signal.SIGTERM)

    cluster.enqueue("run", "a", "b")
    until(lambda: len(cluster.names("ran")) == 2 and not cluster.queued(), what="tasks run and acknowledged")
    assert cluster.instance.pid(role) == pid


def _to_main(cluster: ClusterUnderTest, number: signal.Signals) -> None:
    cluster.main.send_signal(number)


def _to_every_process(cluster: ClusterUnderTest, number: signal.Signals) -> None:
    for process in cluster.instance.processes():
        cluster.instance.kill_process(process, number)


@pytest.mark.parametrize("send", [_to_main, _to_every_process])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_waits_for_the_task_that_runs_and_releases_every_worker(cluster, send, number) -> None:
    cluster.start(workers=2)
    cluster.enqueue("busy", "a", arguments=(0.7,))
    cluster.wait_until_done("a", event="began")

    send(cluster, number)

    assert cluster.wait_for_exit() == 0
    assert cluster.names("ended") == ["a"]
    assert not cluster.queued(), "the task was acknowledged"
    assert sum(line[0] == "stopped" for line in cluster.journal) == 2


def test_sigterm_with_a_full_queue_of_waiting_tasks_stops_within_the_grace_time(
    cluster: ClusterUnderTest,
) -> None:
    """Two workers wait in tasks that find no room, fifty more are in the queue, the pusher is stuck."""
    names = [f"task-{number}" for number in range(120)]
    cluster.enqueue("at_limit", *names)
    cluster.start(workers=2)
    until(lambda: len(cluster.names("waited")) >= 2, what="both workers wait")
    until(lambda: sum(lock > datetime.now(UTC) for lock in cluster.queued()) >= 52, what="a full queue")

    cluster.main.send_signal(signal.SIGTERM)

    assert cluster.wait_for_exit(within=4) == 0
    assert len(cluster.queued()) == 120, "nothing that was not run is lost"
    assert max(cluster.queued()) <= datetime.now(UTC), "the next process need not wait for the locks"
    assert len(cluster.names("waited")) <= 4, "waiting tasks went back unread"
    assert sum(line[0] == "stop-requested" for line in cluster.journal) == 2


def test_a_coordinator_that_does_not_stop_ends_at_the_grace_time_with_a_failure(
    cluster: ClusterUnderTest,
) -> None:
    (cluster.instance.directory / "coordinator-hangs").touch()
    cluster.instance.environ["HOLDFAST_GRACE_SECONDS"] = "1"
    cluster.start(workers=1)

    cluster.main.send_signal(signal.SIGTERM)

    assert cluster.wait_for_exit(within=4) == 72


def test_a_worker_whose_coordinator_cannot_start_is_tried_again_and_the_cluster_lives(
    cluster: ClusterUnderTest,
) -> None:
    refuses = cluster.instance.directory / "coordinator-refuses"
    refuses.touch()
    cluster.main = cluster.instance.spawn("drain_worker", "--workers", "1")
    until(lambda: [line[0] for line in cluster.journal].count("refused") >= 2, what="two refusals")
    pids = {line[-1] for line in cluster.journal}
    assert len(pids) == len(cluster.journal), "each try is a new process"

    refuses.unlink()

    cluster.enqueue("run", "a")
    cluster.wait_until_done("a")


def test_tasks_run_in_the_order_in_which_they_were_queued(cluster: ClusterUnderTest) -> None:
    names = [f"task-{number}" for number in range(100)]
    cluster.enqueue("run", *names)

    cluster.start(workers=1)

    cluster.wait_until_done(*names)
    assert cluster.names("ran") == names


def test_a_task_that_failed_is_not_acknowledged_and_comes_again(cluster: ClusterUnderTest) -> None:
    cluster.enqueue("no_such_function", "a")
    cluster.start(workers=1)

    until(lambda: "queue.task.failed" in cluster.instance.output, what="the failure in the log")

    until(lambda: cluster.queued()[0] > datetime.now(UTC), what="a later delivery")
    assert cluster.main.poll() is None


@requires("postgresql")
def test_on_postgresql_lost_connections_cost_no_task(tmp_path) -> None:
    with (
        servers.temporary_postgres_database() as url,
        Instance.prepare(
            tmp_path, database_url=url, **CLUSTER_ENVIRON, HOLDFAST_TEST_JOURNAL=str(tmp_path / "journal")
        ) as instance,
    ):
        instance.manage("migrate", "-v", "0")
        cluster = ClusterUnderTest(instance)
        cluster.start(workers=1)
        cluster.enqueue("run", "before")
        cluster.wait_until_done("before")

        with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
            _terminate_backends(server, url)

            cluster.enqueue("run", "after")
            cluster.wait_until_done("after")
            until(lambda: not cluster.queued(), what="both acknowledged")

        assert cluster.names("ran") == ["before", "after"]
        cluster.main.send_signal(signal.SIGTERM)
        assert cluster.wait_for_exit() == 0


@requires("postgresql")
def test_on_postgresql_an_outage_is_waited_for_and_the_next_task_runs_after_its_end(
    tmp_path,
) -> None:
    with (
        servers.temporary_postgres_database() as url,
        Instance.prepare(
            tmp_path, database_url=url, **CLUSTER_ENVIRON, HOLDFAST_TEST_JOURNAL=str(tmp_path / "journal")
        ) as instance,
        psycopg.connect(servers.postgres_url(), autocommit=True) as server,
    ):
        instance.manage("migrate", "-v", "0")
        cluster = ClusterUnderTest(instance)
        cluster.start(workers=1)
        until(lambda: _backends(server, url) > 0, what="a connection to lose")
        _allow_connections(server, url, "false")
        _terminate_backends(server, url)
        until(lambda: instance.output.count("queue.poll.failed") >= 2, what="failed polls in the log")

        _allow_connections(server, url, "true")

        cluster.enqueue("run", "after")
        cluster.wait_until_done("after")
        assert cluster.main.poll() is None


def _allow_connections(server: psycopg.Connection, url: str, allowed: LiteralString) -> None:
    name = sql.Identifier(urlsplit(url).path[1:])
    server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(name, sql.SQL(allowed)))


def _backends(server: psycopg.Connection, url: str) -> int:
    counted = server.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [urlsplit(url).path[1:]]
    ).fetchone()
    assert counted is not None
    return int(counted[0])


def _terminate_backends(server: psycopg.Connection, url: str) -> None:
    ended = server.execute(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s",
        [urlsplit(url).path[1:]],
    ).fetchone()
    assert ended is not None
    assert ended[0] > 0, "there was a connection to lose"
