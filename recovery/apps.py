"""The Django app of recovery."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    name = "recovery"
    label = "recovery"
    verbose_name = "Recovery"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from recovery import sweep  # models cannot be imported before the apps are loaded
        from sessions_app import hooks

        hooks.register(sweep=sweep.sweep)
