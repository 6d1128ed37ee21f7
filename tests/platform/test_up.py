"""``manage.py up``: what it does when it is stopped, and when one of its processes is killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platform.conftest import CLUSTER_ENVIRON
from tests.support import servers
from tests.support.processes import PROJECT, Instance, Process, Response
from tests.support.requirements import requires
from tests.support.waiting import until

ALL_ROLES = ["up", "web", "cluster", "sentinel", "worker", "monitor", "pusher"]
CLUSTER_ROLES = ["cluster", "sentinel", "worker", "monitor", "pusher"]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    with Instance.prepare(
        tmp_path, **CLUSTER_ENVIRON, HOLDFAST_TEST_JOURNAL=str(tmp_path / "journal")
    ) as prepared:
        yield prepared


def start(instance: Instance, *arguments: str) -> dict[str, Process]:
    """Start it and return the process of each role."""
    instance.start(*arguments)
    until(lambda: complete(instance), what=f"one process of each role\n{instance.output}")
    return {process.role: process for process in instance.processes()}


def complete(instance: Instance) -> bool:
    return sorted(process.role for process in instance.processes()) == sorted(ALL_ROLES)


def assert_nothing_left(instance: Instance) -> None:
    until(lambda: not instance.processes(), within=10, what="no process left")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_sigterm_stops_everything_and_the_exit_code_is_zero(instance, number) -> None:
    start(instance)

    assert instance.stop(number, within=8) == 0

    assert_nothing_left(instance)
    assert "Stopped." in instance.output


def test_sigterm_to_every_process_stops_everything_and_the_exit_code_is_zero(instance) -> None:
    for process in start(instance).values():
        instance.kill_process(process, signal.SIGTERM)

    assert instance.up.wait(timeout=8) == 0

    assert_nothing_left(instance)


def test_nothing_outlives_a_killed_parent(instance) -> None:
    start(instance)

    instance.kill("up")

    assert_nothing_left(instance)


def test_a_killed_web_server_is_started_again_and_the_workers_are_left_alone(instance) -> None:
    before = start(instance)

    instance.kill("web")

    until(lambda: complete(instance) and instance.pid("web") != before["web"].pid, what="a new web server")
    assert {role: instance.pid(role) for role in CLUSTER_ROLES} == {
        role: before[role].pid for role in CLUSTER_ROLES
    }
    assert instance.request("GET", "/healthz").status < 500
    assert instance.stop() == 0


def test_requests_that_arrive_while_the_web_server_is_started_again_are_answered(instance) -> None:
    start(instance)
    answers: list[Response] = []

    instance.kill("web")
    visitors = [
        threading.Thread(target=lambda: answers.append(instance.request("GET", "/healthz"))) for _ in range(5)
    ]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()

    assert [answer.status < 500 for answer in answers] == [True] * 5


@pytest.mark.parametrize("role", CLUSTER_ROLES)
def test_when_any_process_of_the_cluster_is_killed_the_workers_are_started_again_and_the_web_is_left_alone(
    instance, role
) -> None:
    before = start(instance)

    instance.kill(role)

    until(
        lambda: complete(instance) and all(instance.pid(each) != before[each].pid for each in CLUSTER_ROLES),
        within=20,
        what=f"a new cluster\n{instance.output}",
    )
    assert instance.pid("web") == before["web"].pid
    assert instance.stop() == 0


def test_it_goes_on_when_nobody_reads_its_output_any_more(instance) -> None:
    del instance.environ["PYTHONUNBUFFERED"]
    reading, writing = os.pipe()
    instance.up = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(instance.port), "--workers", "1"],
        cwd=PROJECT, env=instance.environ, stdout=writing,
    )  # fmt: skip
    instance.others.append(instance.up)
    os.close(writing)
    until(lambda: complete(instance), within=60, what="one process of each role")
    os.close(reading)
    web = instance.kill("web")

    until(lambda: complete(instance) and instance.pid("web") != web, what="a new web server")
    assert instance.stop() == 0


def test_a_second_ctrl_c_kills(instance) -> None:
    (instance.directory / "coordinator-hangs").touch()
    instance.environ["HOLDFAST_GRACE_SECONDS"] = "60"
    start(instance)
    instance.up.send_signal(signal.SIGINT)
    until(lambda: "Stopping." in instance.output, what="the stop")

    assert instance.stop(signal.SIGINT, within=5) == 1

    assert_nothing_left(instance)


def test_what_does_not_stop_within_the_grace_time_is_killed_and_the_exit_code_says_so(instance) -> None:
    (instance.directory / "coordinator-hangs").touch()
    instance.environ["HOLDFAST_GRACE_SECONDS"] = "1"
    start(instance)

    assert instance.stop(within=4) == 1

    assert_nothing_left(instance)


@pytest.mark.parametrize("role", ["web", "cluster"])
def test_a_process_that_hears_nothing_is_killed_at_the_grace_time(instance, role) -> None:
    instance.environ["HOLDFAST_GRACE_SECONDS"] = "1"
    start(instance)
    instance.kill(role, signal.SIGSTOP)

    assert instance.stop(within=4) == 1

    assert_nothing_left(instance)


def test_a_port_in_use_is_told_in_one_line_and_nothing_is_started(instance) -> None:
    with socket.create_server(("127.0.0.1", instance.port)):
        refused = instance.manage("up", "--port", str(instance.port), check=False)

    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        (
            f"holdfast: Port {instance.port} on 127.0.0.1 is already in use. "
            "Stop what uses it, or choose another with --port."
        )
    ]
    assert not instance.processes()


def test_a_second_instance_on_one_sqlite_file_is_refused_and_the_first_goes_on(instance) -> None:
    start(instance)

    refused = instance.manage("up", "--port", "0", check=False)

    assert refused.returncode == 1
    assert "Another instance runs web on" in refused.stderr
    assert complete(instance)


def test_web_and_workers_may_run_side_by_side_on_one_sqlite_file(instance) -> None:
    instance.start("--web-only")
    assert [process.role for process in instance.processes()] == ["up", "web"]

    other = instance.spawn("up", "--workers-only", "--workers", "1")

    until(lambda: len(instance.processes("worker")) == 1, what="a worker")
    other.send_signal(signal.SIGTERM)
    assert other.wait(timeout=8) == 0
    assert [process.role for process in instance.processes()] == ["up", "web"]


def test_the_lock_of_a_killed_instance_does_not_keep_the_next_one_from_starting(instance) -> None:
    start(instance)
    instance.kill("up")
    assert_nothing_left(instance)

    start(instance)

    assert instance.stop() == 0


def test_it_migrates_a_new_sqlite_file_into_wal(instance) -> None:
    start(instance)

    with (instance.directory / "holdfast.sqlite3").open("rb") as file:
        header = file.read(20)
    assert header[18:20] == b"\x02\x02", "the file format versions that mean WAL"


@requires("postgresql")
def test_on_postgresql_it_refuses_to_start_with_unapplied_migrations_and_says_how(tmp_path) -> None:
    with (
        servers.temporary_postgres_database() as url,
        Instance.prepare(tmp_path, database_url=url) as instance,
    ):
        refused = instance.manage("up", "--port", "0", check=False)
        assert refused.returncode == 1
        assert "Apply them with: python manage.py migrate" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_a_database_that_is_not_there_is_told_in_one_line(tmp_path) -> None:
    with Instance.prepare(tmp_path, database_url="postgres://nobody@127.0.0.1:1/none") as instance:
        refused = instance.manage("up", "--port", "0", check=False)

    assert refused.returncode == 1
    assert refused.stderr.startswith("holdfast: The database cannot be used: ")
    assert len(refused.stderr.splitlines()) == 1


def test_it_listens_beyond_this_machine_only_with_a_key_that_was_chosen(instance) -> None:
    del instance.environ["SECRET_KEY"]

    refused = instance.manage("up", "--port", "0", "--host", "0.0.0.0", check=False)

    assert refused.returncode == 1
    assert refused.stderr.startswith("holdfast: SECRET_KEY is required when listening on 0.0.0.0")


def test_a_malformed_variable_stops_the_start_with_one_line_and_code_two(instance) -> None:
    refused = instance.manage("up", check=False, HOLDFAST_GRACE_SECONDS="soon")

    assert refused.returncode == 2
    assert refused.stderr == (
        "holdfast: HOLDFAST_GRACE_SECONDS: 'soon' is not allowed. "
        "Allowed: seconds from 0.5 to 3600, such as 5 or 0.5.\n"
    )


def test_the_first_start_prints_a_link_that_makes_the_administrator_and_later_ones_the_chat(instance) -> None:
    instance.start("--web-only")
    assert f"Open http://127.0.0.1:{instance.port}/first-run/" in instance.output
    assert instance.stop() == 0
    instance.manage(
        "createsuperuser", "--noinput", DJANGO_SUPERUSER_USERNAME="ann", DJANGO_SUPERUSER_PASSWORD="p",
        DJANGO_SUPERUSER_EMAIL="ann@example.org",
    )  # fmt: skip

    instance.start("--web-only")

    assert instance.output.splitlines()[-1] == f"holdfast: Open http://127.0.0.1:{instance.port}/"


def test_behind_a_proxy_it_is_ready_by_another_name_and_prints_the_link_that_people_can_open(
    tmp_path,
) -> None:
    with Instance.prepare(
        tmp_path,
        ALLOWED_HOSTS="chat.example.org",
        CSRF_TRUSTED_ORIGINS="https://chat.example.org",
        HOLDFAST_PROXIES="1",
    ) as instance:
        instance.start("--web-only")
        until(lambda: "/first-run/" in instance.output, what="the link")

    assert "https://chat.example.org/first-run/" in instance.output
