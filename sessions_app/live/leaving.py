"""Hears from Django's accounts who signs out and who changes, and tells the readers' guards."""

from typing import Any, Final

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.db.models.signals import post_save
from django.http import HttpRequest

from sessions_app.live import entries

_ID: Final = "sessions_app.live.leaving"


def listen() -> None:
    user_logged_out.connect(_signed_out, dispatch_uid=_ID)
    post_save.connect(_changed, sender=User, dispatch_uid=_ID)


def _signed_out(*, request: HttpRequest, user: User | None, **_: Any) -> None:
    """Called while the web session is still there."""
    session_key = request.session.session_key
    if user is not None and session_key is not None:
        entries.signed_out(user_id=user.pk, session_key=session_key)


def _changed(*, instance: User, created: bool, **_: Any) -> None:
    """A password, a right, or whether they are active may have changed."""
    if not created:
        transaction.on_commit(lambda: entries.changed(instance.pk))
