"""``manage.py recover_sessions``: one discovery and recovery pass."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from recovery import recovery_pass


class Command(BaseCommand):
    help = "Recover sessions whose worker died: settle what was interrupted, wake what is owed."
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="tell what would be done, write nothing")
        parser.add_argument("--session", action="append", default=[], metavar="ID", help="only this one")
        parser.add_argument("--policy", choices=("continue", "ask", "off"), help="for this pass only")
        parser.add_argument("--no-wait", action="store_true", help="do not wait for undetermined workers")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit 0 when done, 3 when something now needs a decision, 1 when a session could not be recovered."""
        unknown = recovery_pass.unknown_sessions(options["session"])
        if unknown:
            raise CommandError(f"No such session: {', '.join(unknown)}. Check the id.")
        try:
            report = recovery_pass.run(
                only=options["session"],
                override=options["policy"],
                wait=not options["no_wait"],
                dry_run=options["dry_run"],
                tell=self._progress,
            )
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}") from error
        if options["json"]:
            self.stdout.write(json.dumps(report.to_json()))
        else:
            self.stdout.write(report.to_table())
        if report.exit_code:
            sys.exit(report.exit_code)

    def _progress(self, line: str) -> None:
        self.stderr.write(line)
