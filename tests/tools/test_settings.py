"""The variables of tools: what is taken, and what stops the start in one line."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from config import env
from tests.support.processes import PROJECT


def read(**environ: str) -> env.Environment:
    return env.read(environ, root=Path("/project"))


@pytest.mark.parametrize(
    ("variable", "value", "field", "parsed"),
    [
        ("HOLDFAST_TOOLS", "", "tools", ()),
        ("HOLDFAST_TOOLS", "shop.tools, shop.mail.send ,", "tools", ("shop.tools", "shop.mail.send")),
        (
            "HOLDFAST_WEBHOOK_URLS",
            "https://a.example.org/x, http://10.0.0.1:8080/y/,https://b.example.org/z?key=1",
            "webhook_urls",
            ("https://a.example.org/x", "http://10.0.0.1:8080/y/", "https://b.example.org/z?key=1"),
        ),
        ("HOLDFAST_MCP_COMMANDS", "", "mcp_commands", {}),
        (
            "HOLDFAST_MCP_COMMANDS",
            "files=mcp-files --root '/srv/my files', time = mcp-time",
            "mcp_commands",
            {"files": ("mcp-files", "--root", "/srv/my files"), "time": ("mcp-time",)},
        ),
        (
            "HOLDFAST_MCP_COMMANDS",
            '{"files": ["mcp-files", "a,b"], "time": "mcp-time --utc"}',
            "mcp_commands",
            {"files": ("mcp-files", "a,b"), "time": ("mcp-time", "--utc")},
        ),
    ],
)
def test_a_variable_is_taken(variable: str, value: str, field: str, parsed: Any) -> None:
    assert getattr(read(**{variable: value}), field) == parsed


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOLDFAST_TOOLS", "shop tools"),
        ("HOLDFAST_TOOLS", "shop.tools:send"),
        ("HOLDFAST_TOOLS", ".tools"),
        ("HOLDFAST_TOOLS", "shop..tools"),
        ("HOLDFAST_TOOLS", "1shop"),
        ("HOLDFAST_WEBHOOK_URLS", "hooks.example.org/x"),
        ("HOLDFAST_WEBHOOK_URLS", "ftp://hooks.example.org/x"),
        ("HOLDFAST_WEBHOOK_URLS", "https://hooks.example.org"),
        ("HOLDFAST_WEBHOOK_URLS", "https://user:secret@hooks.example.org/x"),
        ("HOLDFAST_WEBHOOK_URLS", "https://hooks.example.org/x#y"),
        ("HOLDFAST_WEBHOOK_URLS", "https://hooks.example.org/../x"),
        ("HOLDFAST_WEBHOOK_URLS", "https://hooks.example.org:port/x"),
        ("HOLDFAST_WEBHOOK_URLS", "*"),
        ("HOLDFAST_MCP_COMMANDS", "mcp-files"),
        ("HOLDFAST_MCP_COMMANDS", "files="),
        ("HOLDFAST_MCP_COMMANDS", "a b=c"),
        ("HOLDFAST_MCP_COMMANDS", "files=mcp 'open"),
        ("HOLDFAST_MCP_COMMANDS", "files=a,files=b"),
        ("HOLDFAST_MCP_COMMANDS", '{"files": ["a"], "files": ["b"]}'),
        ("HOLDFAST_MCP_COMMANDS", '{"files": [1]}'),
        ("HOLDFAST_MCP_COMMANDS", '{"files": []}'),
        ("HOLDFAST_MCP_COMMANDS", '{"files": {"a": "b"}}'),
        ("HOLDFAST_MCP_COMMANDS", '{"files": '),
        ("HOLDFAST_MCP_COMMANDS", "x" * 41 + "=a"),
    ],
)
def test_a_malformed_value_is_refused_in_one_line_without_showing_secrets(variable: str, value: str) -> None:
    with pytest.raises(env.BadVariable) as refused:
        read(**{variable: value})

    text = str(refused.value)
    assert text.startswith(f"{variable}: ")
    assert "\n" not in text
    assert "secret" not in text


def test_a_tool_that_cannot_be_imported_stops_the_start_in_one_line(tmp_path: Path) -> None:
    started = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
            "HOLDFAST_RUN_DIR": str(tmp_path / "run"),
            "SECRET_KEY": "a key for tests only, of no value anywhere else",
            "HOLDFAST_TOOLS": "shop.tools",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert started.returncode == 2
    assert started.stderr == (
        "holdfast: HOLDFAST_TOOLS: 'shop.tools' cannot be used: No module named 'shop'.\n"
    )
