"""``purge_sessions --older-than DAYS``: retention by age."""

import sys
from argparse import ArgumentTypeError
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone

from sessions_app.sessions import retention


class Command(BaseCommand):
    help = (
        "Deletes for good the sessions of all users in which nothing has happened for so many days; their ids stay "
        "taken. A session that a worker drains is left alone. Exit 1: one could not be exported or deleted (it is "
        "named, the others are purged)."
    )
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--older-than", type=_days, required=True, metavar="DAYS", dest="age")
        parser.add_argument("--archived-only", action="store_true", help="Only those that were archived.")
        parser.add_argument(
            "--export-to",
            type=Path,
            metavar="DIRECTORY",
            help="Keep each session there as ID.json before it is deleted.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Name them; delete nothing.")

    def handle(
        self, *args: Any, age: timedelta, archived_only: bool, export_to: Path | None, dry_run: bool, **_: Any
    ) -> None:
        now = timezone.now()
        keep = None if export_to is None else retention.keep_in(_directory(export_to), now=now)
        told: Counter[str] = Counter()
        for session in retention.Purge(before=now - age, archived_only=archived_only).find():
            if dry_run:
                told["found"] += 1
                self.stdout.write(f"{session.pk} last active {session.active_at:%Y-%m-%d}")
                continue
            try:
                told[retention.purge(session, now=now, keep=keep)] += 1
            except (OSError, DatabaseError) as error:
                told["failed"] += 1
                self.stderr.write(f"{session.pk}: {error}")
        self.stdout.write(_summary(told, dry_run=dry_run))
        if told["failed"]:
            sys.exit(1)


def _days(text: str) -> timedelta:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 36500:
        raise ArgumentTypeError(f"{text!r} is no number of days: give a whole number from 1 to 36500")
    return timedelta(days=int(text))


def _directory(path: Path) -> Path:
    if not path.is_dir():
        raise CommandError(
            f"{path} is not a directory. Make it first; only its owner should be able to read it."
        )
    return path


def _summary(told: Counter[str], *, dry_run: bool) -> str:
    if dry_run:
        return f"{told['found']} sessions would be purged."
    left = f", {told['in use']} in use were left alone" if told["in use"] else ""
    failed = f", {told['failed']} failed" if told["failed"] else ""
    return f"{told['purged']} sessions were purged{left}{failed}."
