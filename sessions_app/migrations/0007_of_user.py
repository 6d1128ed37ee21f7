"""Attempts and parts say whose they are, so that lists over all sessions of a user need no sorting."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import OuterRef, Subquery

_TABLES = ("messagepart", "providerattempt")


def _fill(apps: Any, schema_editor: Any) -> None:
    sessions = apps.get_model("sessions_app", "Session")
    owner = Subquery(sessions.objects.filter(pk=OuterRef("session_id")).values("user_id")[:1])
    for table in _TABLES:
        apps.get_model("sessions_app", table).objects.filter(user=None).update(user_id=owner)


def _user(**options: Any) -> models.Field:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
        **options,
    )


class Migration(migrations.Migration):
    # What is filled and what is then required of it must not be one transaction (PostgreSQL).
    atomic = False

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sessions_app", "0006_providers"),
    ]

    operations = [
        *(migrations.AddField(table, "user", _user(null=True)) for table in _TABLES),
        migrations.RunPython(_fill, migrations.RunPython.noop),
        *(migrations.AlterField(table, "user", _user()) for table in _TABLES),
        migrations.AddIndex(
            "messagepart",
            models.Index(
                fields=["user", "-started_at", "-id"], name="call_of_user", condition=models.Q(kind="tool")
            ),
        ),
        migrations.AddIndex(
            "providerattempt",
            models.Index(fields=["user", "-prepared_at", "-id"], name="attempt_of_user"),
        ),
    ]
