"""Tickets: how a program without a web session opens a socket. Signed, short-lived, for one user and session.

A ticket may be used more than once while it lasts, so that a client can try again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core import signing
from django.utils import timezone

from sessions_app.live.entries import Entry

LIFETIME: Final = timedelta(seconds=60)
_SALT: Final = "sessions_app.live.ticket"


@dataclass(frozen=True, kw_only=True)
class Ticket:
    ticket: str
    expires: datetime


def issue(*, user_id: int, session_id: str, token_id: int | None = None) -> Ticket:
    """A ticket for this user and session; the caller has checked that the session is the user's.

    What a token asked for is good as long as the token is.
    """
    signed = signing.dumps([user_id, session_id, token_id], salt=_SALT)
    return Ticket(ticket=signed, expires=timezone.now() + LIFETIME)


def redeem(ticket: str, *, session_id: str) -> Entry | None:
    """Whom the ticket lets in; None when it is forged, expired or for another session."""
    try:
        user_id, issued_for, token_id = signing.loads(ticket, salt=_SALT, max_age=LIFETIME)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return Entry(user_id=user_id, token_id=token_id) if issued_for == session_id else None
