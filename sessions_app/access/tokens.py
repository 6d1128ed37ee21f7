"""API tokens: random enough that a plain digest of one tells nothing."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.contrib.auth.models import AbstractBaseUser

from sessions_app.models import ApiToken

_PREFIX: Final = "hft_"
_ENTROPY_BYTES: Final = 32
_LONGEST: Final = 200


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


def find_user(secret: str) -> AbstractBaseUser | None:
    """The active user whose unrevoked token this is; one statement."""
    if len(secret) > _LONGEST:
        return None
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=_digest(secret), revoked_at=None, user__is_active=True)
        .first()
    )
    return None if token is None else token.user


def revoke_token(*, token_id: int, now: datetime) -> bool:
    """From now on the token lets nobody in. False when it was revoked before."""
    return ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=now) == 1


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
