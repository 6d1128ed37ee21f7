"""System checks: promises that a combination of settings would break."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.module_loading import import_string

from config import mounts
from config.env import LEASE_HEARTBEATS

WAKE_WAITS_SECONDS: Final = 20
"""How long a wake may wait in a worker for a place (execution.coordinator.HAND_OVER_SECONDS)."""
_SQLITE: Final = "django.db.backends.sqlite3"


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


@register(Tags.compatibility)
def wakes_come_again(**_: Any) -> list[CheckMessage]:
    """A wake that a worker could not take is delivered again, and not while it still waits there."""
    queue = settings.Q_CLUSTER
    found: list[CheckMessage] = []
    if queue.get("ack_failures") or queue.get("max_attempts"):
        found.append(
            Error(
                "Q_CLUSTER gives up wakes that failed.",
                hint='Leave "ack_failures" False and "max_attempts" 0: a full worker is no reason to lose one.',
                id="holdfast.E004",
            )
        )
    if not int(str(queue.get("retry", 0))) > WAKE_WAITS_SECONDS:
        found.append(
            Error(
                "Q_CLUSTER['retry'] is not longer than a wake may wait in a worker.",
                hint=f"Set it well above {WAKE_WAITS_SECONDS} seconds.",
                id="holdfast.E005",
            )
        )
    return found


@register(Tags.compatibility)
def broker_is_ours(**_: Any) -> list[CheckMessage]:
    """Another broker would not commit with the sessions, whatever the database."""
    if settings.Q_CLUSTER.get("broker_class") == "sessions_app.execution.broker.SafeOrmBroker":
        return []
    return [
        Error(
            "Q_CLUSTER['broker_class'] is not the broker that commits with the sessions.",
            hint='Set it to "sessions_app.execution.broker.SafeOrmBroker", and no other broker beside it.',
            id="holdfast.E006",
        )
    ]


@register(Tags.compatibility)
def layer_crosses_processes(**_: Any) -> list[CheckMessage]:
    """Web and workers are processes of their own: live text and Stop travel over the layer."""
    if settings.CHANNEL_LAYERS["default"]["BACKEND"] != "channels.layers.InMemoryChannelLayer":
        return []
    return [
        Error(
            "The channel layer does not reach other processes.",
            hint="Set REDIS_URL, or leave the embedded layer.",
            id="holdfast.E007",
        )
    ]


@register(Tags.compatibility)
def sqlite_stays_on_one_machine(**_: Any) -> list[CheckMessage]:
    """Locks of a file system that several hosts share do not hold SQLite together."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] != _SQLITE:
        return []
    kind = mounts.shared_kind(Path(database["NAME"]))
    if kind is None:
        return []
    return [
        Error(
            f"The SQLite file is on a file system that hosts share ({kind}).",
            hint="Put it on a local disk, or set DATABASE_URL to PostgreSQL.",
            id="holdfast.E008",
        )
    ]


@register(Tags.compatibility, deploy=True)
def heartbeats_outlast_a_busy_database(**_: Any) -> list[CheckMessage]:
    """Its worker is safe all the same: it sends nothing while in doubt, and its sessions are recovered."""
    database = settings.DATABASES["default"]
    busy = database.get("OPTIONS", {}).get("timeout", 0)
    if database["ENGINE"] != _SQLITE or busy <= settings.HOLDFAST_LEASE_SECONDS:
        return []
    return [
        checks.Warning(
            "A heartbeat may wait for SQLite longer than the lease.",
            hint=f"Set HOLDFAST_LEASE_SECONDS to at least {busy}, unless you test.",
            id="holdfast.W001",
        )
    ]


_NEEDED: Final = (SecurityMiddleware, CsrfViewMiddleware, XFrameOptionsMiddleware, SessionMiddleware)


@register(Tags.security)
def middleware_protects(**_: Any) -> list[CheckMessage]:
    """Ours extend Django's, which its own checks do not see. The API sees to CSRF itself."""
    of_the_api = [needed for needed in _NEEDED if needed is not CsrfViewMiddleware]
    return [*_missing("MIDDLEWARE", _NEEDED), *_missing("HOLDFAST_API_MIDDLEWARE", of_the_api)]


def _missing(setting: str, wanted: Sequence[type]) -> list[CheckMessage]:
    used = [import_string(name) for name in getattr(settings, setting)]
    return [
        Error(
            f"No middleware in {setting} does what {needed.__name__} does.",
            hint=f"Add the one of config.middleware that extends it to {setting}.",
            id="holdfast.E009",
        )
        for needed in wanted
        if not any(isinstance(each, type) and issubclass(each, needed) for each in used)
    ]


@register(Tags.security, deploy=True)
def https_is_kept(**_: Any) -> list[CheckMessage]:
    """What Django would check if it saw the middleware, said in our variables."""
    if not settings.SESSION_COOKIE_SECURE:
        return [
            _doubt(
                "W002", "People do not come over HTTPS only.", "Set CSRF_TRUSTED_ORIGINS to https:// origins."
            )
        ]
    found: list[CheckMessage] = []
    if not settings.HOLDFAST_PROXIES:
        found.append(
            _doubt(
                "W003",
                "No proxy is named that brings HTTPS: nobody is sent on to it, and all count as one address.",
                "Set HOLDFAST_PROXIES to the number of your proxies that add to X-Forwarded-For.",
            )
        )
    if not settings.SECURE_HSTS_SECONDS:
        found.append(
            _doubt("W004", "Browsers may come back without HTTPS.", "Leave HOLDFAST_HSTS_SECONDS unset.")
        )
    return found


def _doubt(number: str, told: str, hint: str) -> CheckMessage:
    return checks.Warning(told, hint=hint, id=f"holdfast.{number}")
