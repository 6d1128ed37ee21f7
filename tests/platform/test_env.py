"""Every variable of the environment: what is taken, and what stops the start in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config import env
from schema.limits import Rate
from tests.support.processes import PROJECT

ROOT = Path("/project")


def read(**environ: str) -> env.Environment:
    return env.read(environ, root=ROOT)


def test_without_any_variable_the_documented_defaults_hold() -> None:
    assert read() == env.Environment(
        role=None,
        database=env.SQLite(path=ROOT / "var/holdfast.sqlite3"),
        redis_url=None,
        secret_key=None,
        allowed_hosts=("localhost", "127.0.0.1", "[::1]"),
        csrf_trusted_origins=(),
        debug=False,
        log_format="text",
        openai_api_key=None,
        openai_base_url=None,
        openai_responses_background=True,
        anthropic_api_key=None,
        anthropic_base_url=None,
        local_model=True,
        local_port=None,
        local_key=None,
        default_model="demo:scripted",
        recovery_policy="continue",
        recovery_budget=3,
        heartbeat_seconds=5,
        lease_seconds=20,
        sweep_seconds=10,
        run_dir=ROOT / "var/run",
        checkpoint_seconds=1,
        grace_seconds=20,
        drains_per_worker=500,
        startup_recovery=True,
        tools=(),
        webhook_urls=(),
        mcp_commands={},
        metrics_token=None,
        user_rate=Rate(120_000, 60),
        token_rate=Rate(60_000, 60),
        sign_in_failures=10,
        sign_in_pause_seconds=900,
        proxies=0,
        hsts_seconds=31_536_000,
    )


TAKEN = [
    ("DATABASE_URL", "sqlite:///data/a.sqlite3", "database", env.SQLite(path=ROOT / "data/a.sqlite3")),
    ("DATABASE_URL", "sqlite:////srv/a%20b.sqlite3", "database", env.SQLite(path=Path("/srv/a b.sqlite3"))),
    (
        "DATABASE_URL",
        "postgres://ann:p%40ss%2Fword@db.example.org:5433/chat?sslmode=require",
        "database",
        env.PostgreSQL(
            name="chat", user="ann", password="p@ss/word", host="db.example.org", port="5433",
            options={"sslmode": "require"},
        ),
    ),
    (
        "DATABASE_URL",
        "postgresql:///chat?host=/run/postgresql",
        "database",
        env.PostgreSQL(name="chat", user="", password="", host="/run/postgresql", port="", options={}),
    ),
    ("REDIS_URL", "redis://127.0.0.1:6379/1", "redis_url", "redis://127.0.0.1:6379/1"),
    ("REDIS_URL", "", "redis_url", None),
    ("ALLOWED_HOSTS", "chat.example.org, .example.net,[::1],*", "allowed_hosts",
     ("chat.example.org", ".example.net", "[::1]", "*")),
    ("CSRF_TRUSTED_ORIGINS", "https://chat.example.org", "csrf_trusted_origins", ("https://chat.example.org",)),
    ("DEBUG", "1", "debug", True),
    ("LOG_FORMAT", "json", "log_format", "json"),
    ("OPENAI_API_KEY", "sk-abc", "openai_api_key", "sk-abc"),
    ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1/", "openai_base_url", "http://127.0.0.1:8080/v1"),
    ("OPENAI_RESPONSES_BACKGROUND", "0", "openai_responses_background", False),
    ("ANTHROPIC_API_KEY", "", "anthropic_api_key", None),
    ("HOLDFAST_LOCAL_MODEL", "0", "local_model", False),
    ("HOLDFAST_LOCAL_PORT", "8080", "local_port", 8080),
    ("HOLDFAST_LOCAL_KEY", "abc", "local_key", "abc"),
    ("HOLDFAST_DEFAULT_MODEL", "openai:gpt-5/x:y", "default_model", "openai:gpt-5/x:y"),
    ("HOLDFAST_RECOVERY_POLICY", "ask", "recovery_policy", "ask"),
    ("HOLDFAST_RECOVERY_BUDGET", "0", "recovery_budget", 0),
    ("HOLDFAST_HEARTBEAT_SECONDS", "0.5", "heartbeat_seconds", 0.5),
    ("HOLDFAST_LEASE_SECONDS", "15", "lease_seconds", 15),
    ("HOLDFAST_SWEEP_SECONDS", "1.5", "sweep_seconds", 1.5),
    ("HOLDFAST_RUN_DIR", "/run/holdfast", "run_dir", Path("/run/holdfast")),
    ("HOLDFAST_CHECKPOINT_SECONDS", "0.2", "checkpoint_seconds", 0.2),
    ("HOLDFAST_GRACE_SECONDS", "30", "grace_seconds", 30),
    ("HOLDFAST_DRAINS_PER_WORKER", "1", "drains_per_worker", 1),
    ("HOLDFAST_STARTUP_RECOVERY", "0", "startup_recovery", False),
    ("HOLDFAST_ROLE", "worker", "role", "worker"),
    ("HOLDFAST_TOOLS", "shop.tools, shop.mail.send", "tools", ("shop.tools", "shop.mail.send")),
    ("HOLDFAST_USER_RATE", "7/hour", "user_rate", Rate(7, 3600)),
    ("HOLDFAST_TOKEN_RATE", "off", "token_rate", None),
    ("HOLDFAST_WEBHOOK_URLS", "https://a.org/x,http://b.org:80/", "webhook_urls",
     ("https://a.org/x", "http://b.org:80/")),
    ("HOLDFAST_MCP_COMMANDS", "files=mcp-files '/srv/my files',time=mcp-time", "mcp_commands",
     {"files": ("mcp-files", "/srv/my files"), "time": ("mcp-time",)}),
    ("HOLDFAST_MCP_COMMANDS", '{"a": ["x", "y,z"], "b": "p q"}', "mcp_commands", {"a": ("x", "y,z"), "b": ("p", "q")}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "field", "parsed"), TAKEN)
def test_a_value_is_taken_as_written(name, value, field, parsed) -> None:
    assert getattr(read(**{name: value}), field) == parsed


REFUSED = [
    ("DATABASE_URL", ["", "mysql://a/b", "sqlite://a.sqlite3", "sqlite:///", "sqlite:///dir/", "sqlite:///:memory:",
                      "postgres://host/", "postgres://host:port/a", "postgres://host/a/b",
                      "postgres://host/a?option=-c", "postgres://host/a?sslmode", "sqlite:///a?mode=ro"]),
    ("REDIS_URL", ["localhost:6379", "http://127.0.0.1", "redis://", "unix://"]),
    ("SECRET_KEY", ["short"]),
    ("ALLOWED_HOSTS", ["", " , ", "http://a.org", "a.org:8000", "a b"]),
    ("CSRF_TRUSTED_ORIGINS", ["chat.example.org", "https://a.org/path", "ftp://a.org"]),
    ("DEBUG", ["true", "yes", "", "2"]),
    ("LOG_FORMAT", ["xml", "JSON", ""]),
    ("OPENAI_API_KEY", ["has space", "k\u00e9y", "line\nbreak"]),
    ("OPENAI_RESPONSES_BACKGROUND", ["auto"]),
    ("ANTHROPIC_API_KEY", ["tab\tbed"]),
    ("OPENAI_BASE_URL", ["api.openai.com", "https://a.org?x=1", "https://", "https://a.org:x"]),
    ("ANTHROPIC_BASE_URL", ["ftp://a.org", "https://a.org#f"]),
    ("HOLDFAST_LOCAL_MODEL", ["", "auto"]),
    ("HOLDFAST_LOCAL_PORT", ["0", "65536", "http"]),
    ("HOLDFAST_LOCAL_KEY", ["has space"]),
    ("HOLDFAST_DEFAULT_MODEL", ["gpt", "openai:", ":x", "Open AI:x", ""]),
    ("HOLDFAST_RECOVERY_POLICY", ["never", "", "Continue"]),
    ("HOLDFAST_RECOVERY_BUDGET", ["-1", "three", "1.5", "", "1001", "\u0663"]),
    ("HOLDFAST_HEARTBEAT_SECONDS", ["0", "-1", "5s", "", "nan", "inf", "1e3"]),
    ("HOLDFAST_LEASE_SECONDS", ["", "soon", "14.9"]),
    ("HOLDFAST_SWEEP_SECONDS", ["0", "x"]),
    ("HOLDFAST_RUN_DIR", [""]),
    ("HOLDFAST_CHECKPOINT_SECONDS", ["0", "x"]),
    ("HOLDFAST_GRACE_SECONDS", ["0", "forever"]),
    ("HOLDFAST_DRAINS_PER_WORKER", ["0", "many", "100001"]),
    ("HOLDFAST_STARTUP_RECOVERY", ["no"]),
    ("HOLDFAST_ROLE", ["server"]),
    ("HOLDFAST_USER_RATE", ["", "10", "0/second", "10/day", "-1/second", "off/second"]),
    ("HOLDFAST_TOKEN_RATE", ["", "1e3/minute", "Off"]),
    ("HOLDFAST_SIGN_IN_FAILURES", ["0", "many"]),
    ("HOLDFAST_SIGN_IN_PAUSE_SECONDS", ["0", "1.5"]),
    ("HOLDFAST_PROXIES", ["-1", "yes", "10"]),
    ("HOLDFAST_HSTS_SECONDS", ["-1", "a year"]),
    ("HOLDFAST_METRICS_TOKEN", ["short", "a token with blanks in it", "a-tok\u00e9n-that-is-not-ascii"]),
    ("HOLDFAST_TOOLS", ["shop tools", "1shop", "shop..tools"]),
    ("HOLDFAST_WEBHOOK_URLS", ["a.org/x", "https://a.org", "https://u:p@a.org/", "https://a.org/#f", "https://a.org/\u00e9", "https://a.org/../x"]),
    ("HOLDFAST_MCP_COMMANDS", ["files", "files=", "a b=c", "a=b,a=c", "a='b", "{", '{"a": 1}', '{"a": ["x", 1]}']),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED for value in values])
def test_a_malformed_value_is_refused_in_one_line_that_names_the_variable(name, value) -> None:
    with pytest.raises(env.BadVariable) as refused:
        read(**{name: value})

    line = str(refused.value)
    assert line.startswith(f"{name}: ")
    assert " Allowed: " in line
    assert "\n" not in line


def test_every_variable_is_tried_with_a_malformed_value() -> None:
    class Recording(dict[str, str]):
        def get(self, name, default=None):
            asked.add(name)
            return super().get(name, default)

    asked: set[str] = set()
    env.read(Recording(), root=ROOT)

    assert asked == {name for name, _ in REFUSED}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SECRET_KEY", "hunter2"),
        ("OPENAI_API_KEY", "hunter2 "),
        ("ANTHROPIC_API_KEY", "hunter2 "),
        ("DATABASE_URL", "postgres://ann:hunter2@host:port/x"),
        ("REDIS_URL", "http://:hunter2@host"),
    ],
)
def test_a_value_that_may_hold_a_secret_is_not_shown(name, value) -> None:
    with pytest.raises(env.BadVariable) as refused:
        read(**{name: value})

    assert "hunter2" not in str(refused.value)


def test_a_lease_shorter_than_three_heartbeats_is_refused_even_if_only_the_heartbeat_was_set() -> None:
    with pytest.raises(
        env.BadVariable, match=r"HOLDFAST_LEASE_SECONDS: '20' .* at least 3 heartbeats, that is 21"
    ):
        read(HOLDFAST_HEARTBEAT_SECONDS="7")


@pytest.mark.parametrize(
    ("argv", "role"),
    [
        (["/x/bin/daphne", "config.asgi:application"], "web"),
        (["/x/daphne/__main__.py", "config.asgi:application"], "web"),
        (["manage.py", "runserver"], "web"),
        (["manage.py", "drain_worker"], "worker"),
        (["manage.py", "migrate"], None),
        (["manage.py"], None),
        (["/x/bin/pytest", "drain_worker"], None),
    ],
)
def test_a_process_without_a_stated_role_is_known_by_its_command_line(argv, role) -> None:
    assert env.serving_role(argv) == role


def load_settings(tmp_path: Path, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own that has loaded the settings."""
    variables = {"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite:///{tmp_path}/a.sqlite3"} | environ
    return subprocess.run(
        [sys.executable, "-c", f"from config import settings; {code}"],
        cwd=PROJECT, env=variables, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_loading_the_settings_with_a_malformed_variable_prints_one_line_and_ends_with_two(tmp_path) -> None:
    done = load_settings(tmp_path, "", DEBUG="maybe")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "holdfast: DEBUG: 'maybe' is not allowed. Allowed: 0 or 1.\n"


def test_more_hosts_than_this_machine_need_a_key_that_was_chosen(tmp_path) -> None:
    done = load_settings(tmp_path, "", ALLOWED_HOSTS="chat.example.org")

    assert done.returncode == 2
    assert done.stderr.startswith("holdfast: SECRET_KEY is required")
    assert len(done.stderr.splitlines()) == 1


def test_a_run_directory_that_cannot_be_made_is_told_in_one_line(tmp_path) -> None:
    (tmp_path / "file").touch()

    done = load_settings(tmp_path, "", HOLDFAST_RUN_DIR=str(tmp_path / "file" / "run"))

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
