"""API tokens: random enough that a plain digest of one tells nothing."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.contrib.auth.models import User
from django.db import connection

from sessions_app.live import entries
from sessions_app.models import ApiToken

_PREFIX: Final = "hft_"
_ENTROPY_BYTES: Final = 32
_LONGEST: Final = 200
_KNOWN: Final = ("id", "username", "is_staff", "is_active")
_USER_OF: Final = f"""
    SELECT token.id, owner.id, owner.username, owner.is_staff
    FROM {ApiToken._meta.db_table} token JOIN {User._meta.db_table} owner ON owner.id = token.user_id
    WHERE token.digest = %s AND token.revoked_at IS NULL AND owner.is_active
"""  # noqa: S608, SLF001


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A token that was just made, with its secret: the only time that anybody sees it."""

    token: ApiToken
    secret: str = field(repr=False)


def create_token(*, user_id: int, name: str, now: datetime) -> NewToken:
    """A new token with the user's own rights. What is stored cannot give the secret back."""
    secret = _PREFIX + secrets.token_urlsafe(_ENTROPY_BYTES)
    token = ApiToken.objects.create(user_id=user_id, name=name, digest=_digest(secret), created_at=now)
    return NewToken(token=token, secret=secret)


@dataclass(frozen=True, kw_only=True)
class Bearer:
    """Whoever has a token that lets them in."""

    user: User
    token_id: int


def find_user(secret: str) -> User | None:
    """The active user whose unrevoked token this is."""
    bearer = find_bearer(secret)
    return None if bearer is None else bearer.user


def find_bearer(secret: str) -> Bearer | None:
    """The token with its active user, unless it was revoked. What requests seldom ask of a user is loaded then.

    One bare statement: every request pays for it, and the ORM would take twenty times as long to compile
    the same.
    """
    if len(secret) > _LONGEST:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_USER_OF, [_digest(secret)])
        row = cursor.fetchone()
    if row is None:
        return None
    token_id, user_id, username, is_staff = row
    user = User.from_db(connection.alias, _KNOWN, (user_id, username, bool(is_staff), True))
    return Bearer(user=user, token_id=token_id)


def revoke_token(*, token_id: int, now: datetime) -> bool:
    """From now on the token lets nobody in. False when it was revoked before."""
    is_revoked = ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=now) == 1
    for user_id in ApiToken.objects.filter(pk=token_id).values_list("user_id", flat=True):
        entries.changed(user_id)
    return is_revoked


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
