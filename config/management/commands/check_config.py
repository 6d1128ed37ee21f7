"""``check_config``: would this installation work as it is configured?"""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config import inspection


class Command(BaseCommand):
    help = (
        "Looks at every variable and tries every connection; nothing stays written. Exit 0: all is well, or there "
        "are warnings only; 1: something is wrong; 2: a variable has a value that is not allowed (all are named)."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--quiet", action="store_true", help="Only what is wrong or doubtful.")
        parser.add_argument("--strict", action="store_true", help="Count warnings as wrong.")

    def handle(self, *args: Any, quiet: bool, strict: bool, **options: Any) -> None:
        counted = {"ok": 0, "warn": 0, "bad": 0}
        for finding in inspection.inspect():
            counted[finding.grade] += 1
            if not quiet or finding.grade != "ok":
                self.stdout.write(f"{finding.grade:<4} {finding.what:<31} {finding.told}")
        self.stdout.write(f"{counted['bad']} wrong, {counted['warn']} doubtful, {counted['ok']} in order.")
        if counted["bad"] or (strict and counted["warn"]):
            sys.exit(1)
