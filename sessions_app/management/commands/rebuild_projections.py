"""``rebuild_projections [--session ID] [--check]``: the tables again from the log, or a comparison only."""

import sys
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from schema.codec import UndecodableEvent
from sessions_app.log import LogError, replay
from sessions_app.models import Session


class Command(BaseCommand):
    help = (
        "Replays the log of each session into its tables and prints what was different. With --check "
        "nothing is changed. Exit 1: --check found a difference, or a log cannot be replayed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--session", metavar="ID", help="This session only.")
        parser.add_argument("--check", action="store_true", help="Compare only.")

    def handle(self, *args: Any, session: str | None, check: bool, **options: Any) -> None:
        different = failed = looked = 0
        for session_id in _chosen(session):
            looked += 1
            try:
                differences = replay.rebuild(session_id, check=check)
            except (LogError, UndecodableEvent) as error:
                failed += 1
                self.stderr.write(f"{session_id}: {error}")
                continue
            different += bool(differences)
            for difference in differences:
                self.stdout.write(f"{session_id}: {difference}")
        said = "differ from their logs" if check else "were rebuilt differently"
        self.stdout.write(f"{looked} sessions, {different} {said}, {failed} could not be replayed.")
        if failed or (check and different):
            sys.exit(1)


def _chosen(session_id: str | None) -> Iterable[str]:
    ids = Session.objects.order_by("pk").values_list("pk", flat=True)
    if session_id is None:
        return list(ids)
    if not ids.filter(pk=session_id).exists():
        raise CommandError(f"There is no session {session_id!r}. Check the id.")
    return [session_id]
