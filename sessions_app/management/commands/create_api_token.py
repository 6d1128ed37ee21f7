"""``create_api_token USERNAME [--name NAME]``: a new API token, shown once."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from sessions_app import access


class Command(BaseCommand):
    help = "Prints a new API token for the user, alone on its line. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="What the token is for; shown in lists.")

    def handle(self, *args: Any, username: str, name: str, **options: Any) -> None:
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {username!r}. Create one first, or check the name.")
        made = access.create_token(user_id=user.pk, name=name, now=timezone.now())
        self.stdout.write(made.secret)
