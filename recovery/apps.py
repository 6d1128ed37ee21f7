"""The Django app of recovery."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    name = "recovery"
    label = "recovery"
    verbose_name = "Recovery"
    default_auto_field = "django.db.models.BigAutoField"
