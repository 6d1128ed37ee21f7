"""The Django app of recovery."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    name = "recovery"
    label = "recovery"
    verbose_name = "Recovery"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models cannot be imported before the apps are loaded.
        from recovery import startup, sweep
        from sessions_app import hooks

        hooks.register(
            orphan_found=sweep.orphan_found,
            sweep=sweep.sweep,
            outcome_unknown=sweep.outcome_unknown,
        )
        startup.start()
