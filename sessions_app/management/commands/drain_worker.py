"""``manage.py drain_worker``: the processes that run the sessions' work."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand

DEFAULT_WORKERS = 2


def number_of_workers(text: str) -> int:
    """Raises ArgumentTypeError for anything but a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of workers: give 1 or more")
    return int(text)


class Command(BaseCommand):
    help = (
        "Run worker processes until SIGTERM or Ctrl-C. Each hosts many sessions at once. "
        "Ends with a code other than 0 when it should be started again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--workers", type=number_of_workers, default=DEFAULT_WORKERS, help="number of worker processes"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        from sessions_app.execution import cluster

        sys.exit(cluster.Cluster(workers=options["workers"]).run())
