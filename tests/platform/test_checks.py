"""The system checks refuse settings that would break a promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.test import override_settings

from config import checks, mounts
from sessions_app.execution import coordinator
from tests.support.processes import PROJECT

EMBEDDED = {"default": {"BACKEND": "sessions_app.live.layer.UnixSocketChannelLayer", "CONFIG": {"path": "x"}}}


@pytest.fixture(autouse=True)
def _a_layer_that_crosses_processes(settings) -> None:
    settings.CHANNEL_LAYERS = EMBEDDED


def found() -> list[str]:
    names = (message.id or "" for message in run_checks())
    return [name for name in names if name.startswith("holdfast.")]


def test_the_settings_as_they_are_pass() -> None:
    assert found() == []


def test_a_queue_on_another_database_is_refused_because_a_prompt_and_its_wake_commit_together() -> None:
    with override_settings(Q_CLUSTER={**settings.Q_CLUSTER, "orm": "other"}):
        assert found() == ["holdfast.E001"]


def test_a_lease_shorter_than_three_heartbeats_is_refused() -> None:
    with override_settings(HOLDFAST_HEARTBEAT_SECONDS=7, HOLDFAST_LEASE_SECONDS=20):
        assert found() == ["holdfast.E002"]


def test_a_task_timeout_or_recycling_is_refused_because_many_sessions_live_in_one_worker() -> None:
    for change in ({"timeout": 30}, {"recycle": 500}):
        with override_settings(Q_CLUSTER={**settings.Q_CLUSTER, **change}):
            assert found() == ["holdfast.E003"]


def test_a_queue_that_gives_up_wakes_is_refused() -> None:
    for change in ({"ack_failures": True}, {"max_attempts": 3}):
        with override_settings(Q_CLUSTER={**settings.Q_CLUSTER, **change}):
            assert found() == ["holdfast.E004"]


def test_a_queue_that_repeats_wakes_while_they_wait_is_refused() -> None:
    with override_settings(Q_CLUSTER={**settings.Q_CLUSTER, "retry": 20}):
        assert found() == ["holdfast.E005"]


def test_the_time_that_a_wake_waits_is_the_one_that_the_check_knows() -> None:
    assert checks.WAKE_WAITS_SECONDS == coordinator.HAND_OVER_SECONDS


def test_another_broker_is_refused() -> None:
    with override_settings(Q_CLUSTER={**settings.Q_CLUSTER, "broker_class": ""}):
        assert found() == ["holdfast.E006"]


def test_a_layer_that_ends_with_its_process_is_refused() -> None:
    with override_settings(CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}):
        assert found() == ["holdfast.E007"]


def sqlite(**options: object) -> dict[str, object]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": "/srv/a.sqlite3", "OPTIONS": options}


def test_a_site_without_protection_against_forged_requests_is_refused() -> None:
    kept = [name for name in settings.MIDDLEWARE if not name.endswith(".Csrf")]

    with override_settings(MIDDLEWARE=kept):
        assert found() == ["holdfast.E009"]


@pytest.mark.parametrize("name", ["Security", "Sessions", "XFrameOptions"])
def test_an_api_without_the_protection_of_pages_is_refused(name: str) -> None:
    kept = [each for each in settings.HOLDFAST_API_MIDDLEWARE if not each.endswith(f".{name}")]

    with override_settings(HOLDFAST_API_MIDDLEWARE=kept):
        assert found() == ["holdfast.E009"]


def test_sqlite_on_a_shared_file_system_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(mounts, "shared_kind", lambda _: "nfs4")

    monkeypatch.setitem(settings.DATABASES, "default", sqlite())

    assert [each.id for each in checks.sqlite_stays_on_one_machine()] == ["holdfast.E008"]


def test_a_lease_that_a_busy_database_outlasts_is_told(monkeypatch) -> None:
    monkeypatch.setitem(settings.DATABASES, "default", sqlite(timeout=20))

    for lease, told in ((19, ["holdfast.W001"]), (20, [])):
        with override_settings(HOLDFAST_LEASE_SECONDS=lease):
            assert [each.id for each in checks.heartbeats_outlast_a_busy_database()] == told


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/data/a.sqlite3", "nfs4"),
        ("/srv/a.sqlite3", None),
        ("/srv/datastore/a", None),
        ("/mnt/my disk/a", "cifs"),
    ],
)
def test_the_file_system_of_a_file_is_that_of_the_longest_directory(
    tmp_path: Path, path: str, kind: object
) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        "/dev/sda / ext4 rw 0 0\nhost:/x /srv/data nfs4 rw 0 0\n//host/y /mnt/my\\040disk cifs rw 0 0\n"
    )

    assert mounts.shared_kind(Path(path), mounts=table) == kind


def test_the_production_profile_is_clean_and_without_its_proxy_it_is_not(tmp_path: Path) -> None:
    production = {
        "SECRET_KEY": "x9" + "".join(chr(97 + number % 26) for number in range(60)),
        "ALLOWED_HOSTS": "chat.example.org",
        "CSRF_TRUSTED_ORIGINS": "https://chat.example.org",
        "DATABASE_URL": f"sqlite:///{tmp_path}/a.sqlite3",
        "HOLDFAST_RUN_DIR": str(tmp_path / "run"),
    }

    clean = deploy_check(**production, HOLDFAST_PROXIES="1")
    doubtful = deploy_check(**production)

    assert (clean.returncode, clean.stderr) == (0, ""), clean.stderr
    assert doubtful.returncode == 1
    assert "holdfast.W003" in doubtful.stderr
    assert "holdfast.W002" in deploy_check(**production | {"CSRF_TRUSTED_ORIGINS": ""}).stderr
    assert "holdfast.W004" in deploy_check(**production, HOLDFAST_HSTS_SECONDS="0").stderr


def deploy_check(**environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=PROJECT, env={"PATH": os.environ["PATH"], **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip
