"""What time it is."""

import zoneinfo

from django.utils import timezone

from sessions_app.tools.declare import tool


class UnknownZone(Exception):
    """No time zone has this name."""

    def __init__(self, zone: str) -> None:
        self.zone = zone
        super().__init__(
            f"There is no time zone {zone[:60]!r}. Use an IANA name such as Europe/Paris, America/New_York or UTC."
        )


@tool(effect="read", timeout_seconds=10)
def current_time(zone: str = "UTC") -> str:
    """Tell the current date and time.

    Args:
        zone: IANA name of the time zone, such as Europe/Paris; UTC if absent.
    """
    now = timezone.now().astimezone(_zone(zone)).replace(microsecond=0)
    return f"{now.isoformat()} ({now:%A}, {zone})"


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(name) from None
