"""The first run: a one-time link that creates the administrator. No default password exists."""

import hashlib
import secrets
from datetime import datetime
from typing import Final, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sessions_app.models import SetupLink

LinkState = Literal["open", "used", "unknown", "closed"]
"""``closed``: an account exists already, so that no link opens any more."""

_TOKEN_BYTES: Final = 32


class LinkRefused(Exception):
    """The first-run link cannot be used; ``state`` says why."""

    def __init__(self, state: LinkState) -> None:
        self.state = state
        super().__init__(f"The first-run link is {state}. Sign in, or run manage.py createsuperuser.")


def is_needed() -> bool:
    """Whether nobody can sign in because no account exists."""
    return not User.objects.exists()


def issue_link(base_url: str) -> str | None:
    """A new link that creates the administrator once, or None when an account exists.

    Only its digest is stored, so that the link is readable nowhere but here. Links issued before and
    never used stop working.
    """
    if not is_needed():
        return None
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with transaction.atomic():
        SetupLink.objects.filter(used_at=None).delete()
        SetupLink.objects.create(digest=_digest(token), created_at=timezone.now())
    return f"{base_url.rstrip('/')}/first-run/{token}"


def look(token: str) -> LinkState:
    """What the link is worth now; it may be used by someone else a moment later."""
    link = SetupLink.objects.filter(digest=_digest(token)).first()
    return _state(link)


def create_administrator(*, token: str, user: User, now: datetime) -> None:
    """Store the account as administrator and burn the link, both or neither.

    ``user`` is validated and not saved; its password is hashed already. Of any number of calls at once
    one creates an account. Raises LinkRefused.
    """
    with transaction.atomic():
        # Every link is locked, not only this one: two links of two servers must not make two accounts.
        links = {link.digest: link for link in SetupLink.objects.select_for_update().order_by("pk")}
        link = links.get(_digest(token))
        state = _state(link)
        if link is None or state != "open":
            raise LinkRefused(state)
        user.is_staff = user.is_superuser = True
        user.save(force_insert=True)
        SetupLink.objects.filter(pk=link.pk).update(used_at=now)


def _state(link: SetupLink | None) -> LinkState:
    if link is not None and link.used_at is not None:
        return "used"
    if not is_needed():
        return "closed"
    return "unknown" if link is None else "open"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
