"""The Django app of the core."""

from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "sessions_app"
    label = "sessions_app"
    verbose_name = "Sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Readers are told of every commit; what operators want to know is counted."""
        from sessions_app import figures, log
        from sessions_app.live import leaving, publish

        log.on_commit(publish.events)
        log.on_commit(figures.events)
        leaving.listen()
