"""System checks: promises that a combination of settings would break."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from config.env import LEASE_HEARTBEATS


@register(Tags.compatibility)
def queue_commits_with_sessions(**_: Any) -> list[CheckMessage]:
    """A prompt and the task that wakes its session are one commit only on one connection."""
    if settings.Q_CLUSTER.get("orm") == "default":
        return []
    return [
        Error(
            "Q_CLUSTER['orm'] names another database than the one that holds sessions.",
            hint='Set it to "default": an acknowledged prompt and its wake must commit together.',
            id="holdfast.E001",
        )
    ]


@register(Tags.compatibility)
def lease_outlives_heartbeats(**_: Any) -> list[CheckMessage]:
    """With a shorter lease a worker that was slow for a moment would be declared dead."""
    least = LEASE_HEARTBEATS * settings.HOLDFAST_HEARTBEAT_SECONDS
    if least <= settings.HOLDFAST_LEASE_SECONDS:
        return []
    return [
        Error(
            f"HOLDFAST_LEASE_SECONDS is shorter than {LEASE_HEARTBEATS} heartbeats.",
            hint=f"Set it to at least {least:g}, or shorten HOLDFAST_HEARTBEAT_SECONDS.",
            id="holdfast.E002",
        )
    ]


@register(Tags.compatibility)
def workers_keep_their_drains(**_: Any) -> list[CheckMessage]:
    """A timeout kills a worker with every drain in it; a recycled one is not replaced while it drains."""
    if settings.Q_CLUSTER.get("timeout") is None and settings.Q_CLUSTER.get("recycle") == 0:
        return []
    return [
        Error(
            "Q_CLUSTER sets a timeout or recycles workers.",
            hint='Leave "timeout" None and "recycle" 0: many sessions live in one worker.',
            id="holdfast.E003",
        )
    ]
