"""The Django app of the composition: it registers the system checks."""

from django.apps import AppConfig


class CompositionConfig(AppConfig):
    name = "config"
    label = "config"
    verbose_name = "Composition"

    def ready(self) -> None:
        from config import checks  # noqa: F401  (importing registers them)
