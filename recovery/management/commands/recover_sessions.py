"""``manage.py recover_sessions``: one discovery and recovery pass."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from recovery import recovery_pass
from sessions_app import figures


class Command(BaseCommand):
    help = (
        "Recovers sessions whose worker died: settles what was interrupted, wakes what is owed. Exit 0: done; "
        "3: something now needs a decision; 1: a session could not be recovered (the others were)."
    )
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Tell what would be done now; wait for nobody, write nothing.",
        )
        parser.add_argument(
            "--session", action="append", default=[], metavar="ID", help="This session only; can be repeated."
        )
        parser.add_argument("--policy", choices=("continue", "ask", "off"), help="For this pass only.")
        parser.add_argument(
            "--no-wait", action="store_true", help="Report workers that may be alive as undetermined at once."
        )
        parser.add_argument("--json", action="store_true", help="One JSON object instead of a table.")

    def handle(self, *args: Any, **options: Any) -> None:
        asked = recovery_pass.Pass(
            only=frozenset(options["session"]),
            override=options["policy"],
            wait=not options["no_wait"],
            tell=self.stderr.write,
        )
        try:
            unknown = recovery_pass.unknown_sessions(options["session"])
            if unknown:
                raise CommandError(f"There is no session {', '.join(map(repr, unknown))}. Check the id.")
            run = recovery_pass.foresee_all if options["dry_run"] else recovery_pass.run
            report = run(asked)
            code = report.exit_code()
            figures.store()
        except (DatabaseError, OSError) as error:
            raise CommandError(f"Nothing more could be recovered: {error}") from error
        self.stdout.write(json.dumps(report.to_json()) if options["json"] else report.to_table())
        if code:
            sys.exit(code)
