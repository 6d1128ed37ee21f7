"""The Django app of the composition: it registers the system checks and loads the site's own tools."""

import sys

from django.apps import AppConfig
from django.conf import settings


class CompositionConfig(AppConfig):
    name = "config"
    label = "config"
    verbose_name = "Composition"

    def ready(self) -> None:
        from config import checks  # noqa: F401  (importing registers them)

        _load_tools()


def _load_tools() -> None:
    """A tool that cannot be offered stops the start in one line, as a malformed variable does."""
    if not settings.HOLDFAST_TOOLS:
        return
    from sessions_app.tools import registry

    try:
        registry.local()
    except (registry.UnusableTool, registry.DuplicateTool) as refused:
        print(f"holdfast: {refused}", file=sys.stderr)
        raise SystemExit(2) from None
