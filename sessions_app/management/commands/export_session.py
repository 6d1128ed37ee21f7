"""``export_session ID [--format json|markdown]``: a session as a file on standard output."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from sessions_app.models import Session
from sessions_app.sessions import export


class Command(BaseCommand):
    help = "Writes a session to standard output: lossless JSON, or Markdown to read."
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", metavar="ID")
        parser.add_argument("--format", choices=("json", "markdown"), default="json", dest="form")

    def handle(self, *args: Any, session: str, form: export.Format, **options: Any) -> None:
        row = Session.objects.filter(pk=session).first()
        if row is None:
            raise CommandError(f"There is no session {session!r}. Check the id.")
        for piece in export.write(row, form=form, now=timezone.now()):
            self.stdout.write(piece, ending="")
