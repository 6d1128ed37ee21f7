"""A process: prepares the database that every house starts from, and prints the token of its user."""

import django


def main() -> None:
    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.utils import timezone

    from sessions_app import access
    from sessions_app.models import Agent

    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_user(username="ann")
    Agent.objects.create(name="asks", tool_modes={"send": "ask"})
    print(access.create_token(user_id=user.pk, name="crash", now=timezone.now()).secret)


if __name__ == "__main__":
    main()
