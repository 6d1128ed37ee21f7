"""Column kinds that several tables share."""

from typing import Any, Final

from django.db import models

from schema.ids import MAX_LENGTH

NAME_LENGTH: Final = 200


def identity(**options: Any) -> "models.CharField[str, str]":
    """A prefixed id as primary key."""
    return models.CharField(primary_key=True, max_length=MAX_LENGTH, **options)


def position(**options: Any) -> "models.BigIntegerField[int, int]":
    """A sequence number in a session's log."""
    return models.BigIntegerField(**options)


def position_or_none() -> "models.BigIntegerField[int | None, int | None]":
    """A sequence number that is not there yet, or no more."""
    return models.BigIntegerField(null=True, blank=True)


def word(*, length: int = 20, **options: Any) -> "models.CharField[str, str]":
    """One word of a closed vocabulary."""
    return models.CharField(max_length=length, **options)
