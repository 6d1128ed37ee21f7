"""Runs a function of a test module in a process of its own, on the database of the test.

    child = children.start("tests.log.dying", "die_in_transaction", session_id)
    assert child.wait(timeout=20) == 9

The function gets its arguments as text. What it prints can be read from ``child.stdout``.
"""

import importlib
import os
import subprocess
import sys
from typing import Final
from urllib.parse import quote

PATIENCE_SECONDS: Final = 60.0


def start(module: str, function: str, *arguments: str) -> "subprocess.Popen[str]":
    """Begin the function in another process. The caller waits for its end, or kills it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.children", module, function, *arguments],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": database_url()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(module: str, function: str, *arguments: str) -> int:
    """Run the function to its end; the exit code of its process."""
    with start(module, function, *arguments) as child:
        return child.wait(timeout=PATIENCE_SECONDS)


def database_url() -> str:
    """Where the test's database is, as DATABASE_URL says it."""
    from django.db import connection

    described = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{described['NAME']}"
    user, password = (quote(described[name], safe="") for name in ("USER", "PASSWORD"))
    return f"postgres://{user}:{password}@{described['HOST']}:{described['PORT']}/{described['NAME']}"


def _main(module: str, function: str, *arguments: str) -> None:
    import django

    django.setup()
    getattr(importlib.import_module(module), function)(*arguments)


if __name__ == "__main__":
    _main(*sys.argv[1:])
