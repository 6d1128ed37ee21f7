"""The names that tools of a server have here."""

import hashlib
import re
from typing import Final

SEPARATOR: Final = "__"
MAX_LENGTH: Final = 64
_DIGEST_LENGTH: Final = 8
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(*, server: str, tool: str) -> str:
    """``server__tool``; the same two always give the same name.

    A name that is too long or holds what providers refuse is cut and altered, and then ends with a digest of
    the original, so that two of them do not become one.
    """
    plain = f"{server}{SEPARATOR}{tool}"
    name = _NOT_ALLOWED.sub("_", plain)
    if not re.match(r"[a-zA-Z_]", name):
        name = f"_{name}"
    if name == plain and len(name) <= MAX_LENGTH:
        return name
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: MAX_LENGTH - _DIGEST_LENGTH - 1]}_{digest}"
