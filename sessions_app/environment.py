"""Secrets that configuration names by an environment variable: read when they are needed, never stored."""

import os
import re
from typing import Final

_OURS: Final = frozenset({"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "PGPASSWORD", "PGPASSFILE"})
_BEGINNINGS_OF_OURS: Final = ("HOLDFAST_", "DJANGO_", "POSTGRES_", "POSTGRESQL_", "REDIS_")

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def is_ours(variable: str) -> bool:
    """Whether it may be a secret of this installation, which no server is ever sent, whatever a row names."""
    name = variable.upper()
    return name in _OURS or name.startswith(_BEGINNINGS_OF_OURS)


def why_unusable(variable: str) -> str | None:
    """Why no secret can be read from a variable of this name; None if one can. Says no value."""
    if not _NAME.match(variable):
        return "Name an environment variable, such as MY_PROVIDER_KEY, not its value."
    if is_ours(variable):
        return f"{variable} is a secret of this installation and is sent to nobody."
    return None


def find_secret(variable: str) -> str | None:
    """The value of the variable; None when it is empty, not set, or a secret of ours."""
    if is_ours(variable):
        return None
    return os.environ.get(variable, "").strip() or None
