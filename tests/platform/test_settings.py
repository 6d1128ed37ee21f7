"""What the settings make of the environment, for each role."""

import json
import logging
import os
import stat
import threading
from pathlib import Path

import pytest

from config import databases, env, logs, paths
from tests.platform.test_env import load_settings

POSTGRESQL = env.PostgreSQL(
    name="chat", user="ann", password="p", host="db", port="5432", options={"sslmode": "require"}
)
KEY = "k" * 32


def test_a_web_process_on_postgresql_shares_a_pool_because_every_request_has_a_thread() -> None:
    described = databases.connection(POSTGRESQL, role="web")

    assert described["OPTIONS"] == {"sslmode": "require", "pool": databases.WEB_POOL}
    assert "CONN_MAX_AGE" not in described


def test_a_worker_on_postgresql_keeps_its_connections_and_checks_them() -> None:
    described = databases.connection(POSTGRESQL, role="worker")

    assert described["OPTIONS"] == {"sslmode": "require"}
    assert (described["CONN_MAX_AGE"], described["CONN_HEALTH_CHECKS"]) == (None, True)


def test_a_command_on_postgresql_has_one_plain_connection() -> None:
    described = databases.connection(POSTGRESQL, role=None)

    assert described["OPTIONS"] == {"sslmode": "require"}
    assert "CONN_MAX_AGE" not in described


@pytest.mark.parametrize("role", ["web", "worker", None])
def test_sqlite_takes_the_write_lock_at_the_start_and_syncs_every_commit_in_every_role(role) -> None:
    described = databases.connection(env.SQLite(path=Path("/x/a.sqlite3")), role=role)

    assert described["NAME"] == "/x/a.sqlite3"
    assert described["OPTIONS"] == {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA synchronous=FULL",
    }


def test_redis_url_chooses_the_pub_sub_layer_and_without_it_the_embedded_one_is_used(tmp_path) -> None:
    show = "print(settings.CHANNEL_LAYERS['default'])"

    scaled = load_settings(tmp_path, show, SECRET_KEY=KEY, REDIS_URL="redis://127.0.0.1:6379/3")
    embedded = load_settings(tmp_path, show, SECRET_KEY=KEY, HOLDFAST_RUN_DIR=str(tmp_path / "run"))

    assert "channels_redis.pubsub.RedisPubSubChannelLayer" in scaled.stdout
    assert "redis://127.0.0.1:6379/3" in scaled.stdout
    assert str(tmp_path / "run" / "layer.sock") in embedded.stdout


def test_https_origins_make_the_cookies_secure(tmp_path) -> None:
    show = "print(settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE)"

    https = load_settings(tmp_path, show, SECRET_KEY=KEY, CSRF_TRUSTED_ORIGINS="https://a.org,https://b.org")
    mixed = load_settings(tmp_path, show, SECRET_KEY=KEY, CSRF_TRUSTED_ORIGINS="https://a.org,http://b.org")
    none = load_settings(tmp_path, show, SECRET_KEY=KEY)

    assert [each.stdout.strip() for each in (https, mixed, none)] == [
        "True True",
        "False False",
        "False False",
    ]


def test_the_queue_commits_with_the_sessions_and_never_gives_a_failed_hand_over_up() -> None:
    from config.settings import Q_CLUSTER

    assert Q_CLUSTER["orm"] == "default"
    assert (Q_CLUSTER["ack_failures"], Q_CLUSTER["max_attempts"]) == (False, 0)
    assert (Q_CLUSTER["recycle"], Q_CLUSTER["timeout"]) == (0, None)


def test_loading_the_settings_warns_of_nothing(tmp_path) -> None:
    done = load_settings(
        tmp_path, "import django; django.setup()", SECRET_KEY=KEY, DJANGO_SETTINGS_MODULE="config.settings"
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_secret_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    made = paths.secret_key(tmp_path / "secret_key")

    assert len(made) >= env.SHORTEST_SECRET_KEY
    assert paths.secret_key(tmp_path / "secret_key") == made
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["secret_key"]


def test_processes_that_start_at_once_agree_on_one_secret_key(tmp_path: Path) -> None:
    keys: list[str] = []
    start = threading.Barrier(16)

    def one() -> None:
        start.wait()
        keys.append(paths.secret_key(tmp_path / "secret_key"))

    threads = [threading.Thread(target=one) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keys) == 16
    assert len(set(keys)) == 1


def test_an_empty_secret_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()

    with pytest.raises(OSError, match="is empty"):
        paths.secret_key(tmp_path / "secret_key")


def test_a_run_directory_too_deep_for_a_socket_gets_a_short_private_path_that_all_processes_agree_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    deep = tmp_path / ("d" * 100) / "run"

    socket = paths.layer_socket(deep)

    assert socket == paths.layer_socket(deep)
    assert socket != paths.layer_socket(tmp_path / ("e" * 100) / "run")
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_a_short_socket_directory_that_others_can_enter_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    deep = tmp_path / ("d" * 100)
    paths.layer_socket(deep).parent.chmod(0o755)

    with pytest.raises(OSError, match="open to others"):
        paths.layer_socket(deep)


def record(**fields: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "holdfast", "levelname": "INFO", "msg": "claim.lost", **fields})


def test_a_json_log_line_holds_the_event_and_its_fields() -> None:
    line = json.loads(logs.JsonFormatter().format(record(session="ses_1", path=Path("/x"))))

    assert (line["event"], line["level"], line["session"], line["path"]) == (
        "claim.lost",
        "INFO",
        "ses_1",
        "/x",
    )
    assert line["time"].endswith("+00:00")


def test_a_text_log_line_holds_the_event_and_its_fields() -> None:
    line = logs.TextFormatter().format(record(session="ses_1"))

    assert line.endswith("INFO holdfast claim.lost session=ses_1")


@pytest.mark.parametrize("formatter", [logs.JsonFormatter(), logs.TextFormatter()])
def test_a_log_line_with_an_exception_holds_its_traceback_and_never_the_request_object(formatter) -> None:
    try:
        words = "secret"
        raise ValueError(words)
    except ValueError as error:
        line = formatter.format(
            record(exc_info=(type(error), error, error.__traceback__), request="GET secret")
        )

    assert "Traceback" in line
    assert "builtins.ValueError (its text is not logged)" in line
    assert "secret" not in line
