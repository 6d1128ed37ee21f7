"""Column kinds that several tables share."""

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import models

from schema.ids import MAX_LENGTH

if TYPE_CHECKING:
    from django.contrib.auth.models import User

NAME_LENGTH: Final = 200

UNDECIDED: Final = models.Q(unknown_at__isnull=False, decided_at__isnull=True)
"""An outcome that is not known and was not decided on. Queries say it with this very condition: an index that
holds only such rows is used for nothing else."""


def identity(**options: Any) -> "models.CharField[str, str]":
    """A prefixed id as primary key."""
    return models.CharField(primary_key=True, max_length=MAX_LENGTH, **options)


def of_user() -> "models.ForeignKey[User, User]":
    """Whose session it is, once more: lists of all that is one user's are read from an index of this table.

    The session's own reference proves that the user exists.
    """
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )


def position(**options: Any) -> "models.BigIntegerField[int, int]":
    """A sequence number in a session's log."""
    return models.BigIntegerField(**options)


def position_or_none() -> "models.BigIntegerField[int | None, int | None]":
    """A sequence number that is not there yet, or no more."""
    return models.BigIntegerField(null=True, blank=True)


def word(*, length: int = 20, **options: Any) -> "models.CharField[str, str]":
    """One word of a closed vocabulary."""
    return models.CharField(max_length=length, **options)
