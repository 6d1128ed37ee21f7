"""Runs ``drain_worker`` and writes down when each delta was published: (part, offset, monotonic seconds).

The product is not changed: its function is wrapped before the worker processes are forked.
"""

import os
import sys
import time
from typing import Final

import django

TRACE: Final = os.environ.get("HOLDFAST_BENCH_TRACE", "")


def wrap() -> None:
    from sessions_app.live import publish

    published = publish.delta
    trace = open(TRACE, "a", buffering=1, encoding="ascii")  # noqa: SIM115 - open as long as the process lives

    def delta(session_id: str, message: str, part: str, offset: int, text: str) -> None:
        trace.write(f"{part} {offset} {time.monotonic()}\n")
        published(session_id, message, part, offset, text)

    publish.delta = delta


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    wrap()
    from django.core.management import call_command

    call_command("drain_worker", *sys.argv[1:])


if __name__ == "__main__":
    main()
