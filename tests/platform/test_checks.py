"""The system checks refuse settings that would break a promise."""

from django.conf import settings
from django.core.checks import run_checks
from django.test import override_settings


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
