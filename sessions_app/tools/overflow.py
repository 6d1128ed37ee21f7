"""Bounds what a tool returned: its beginning stays with the call, the whole of it is stored beside."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from schema.text import clean
from sessions_app import identity
from sessions_app.models import ToolOverflow
from sessions_app.tools.port import Output

INLINE_BYTES: Final = 32 * 1024
STORED_BYTES: Final = 64 * 1024 * 1024
ERROR_BYTES: Final = 4 * 1024


@dataclass(frozen=True, kw_only=True)
class Overflow:
    """An output that is not kept, or not whole, with its call."""

    content: bytes
    is_text: bool


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """``text`` is what the call keeps; ``overflow``, if any, is to be stored with it."""

    text: str
    overflow: Overflow | None = None


def bound(output: Output) -> Bounded:
    """Clean text that is short enough as it is; else its beginning and a line about the rest. Bytes never.

    Costs time in proportion to the output (a tenth of a second for 50 MB): call it on a thread, before the
    transaction begins.
    """
    if isinstance(output.content, bytes):
        return _binary(output.content)
    # A character takes at most four bytes: nothing is cleaned that would not be stored.
    text = clean(output.content[: STORED_BYTES + 1])
    if _is_short(text, INLINE_BYTES):
        return Bounded(text=text, overflow=_beside(output.whole))
    whole = text.encode()
    stored = _beginning(whole, STORED_BYTES)
    shown = _beginning(whole, INLINE_BYTES)
    note = _note(shown=len(shown), stored=len(stored), whole=len(whole) + len(output.content) - len(text))
    return Bounded(
        text=f"{shown.decode()}\n\n[{note}]",
        overflow=_beside(output.whole) or Overflow(content=stored, is_text=True),
    )


def store(*, session_id: str, overflow: Overflow, now: datetime) -> str:
    """Store it in the caller's transaction and return its id. It goes when its session is deleted."""
    overflow_id = identity.new_overflow_id()
    ToolOverflow.objects.create(
        id=overflow_id,
        session_id=session_id,
        created_at=now,
        content=overflow.content,
        is_text=overflow.is_text,
    )
    return overflow_id


def error_text(output: Output) -> str:
    """What an error says, short enough to be kept with the call; of bytes only how many there were."""
    if isinstance(output.content, bytes):
        return f"The tool failed and answered with {len(output.content):,} bytes that are no text."
    text = clean(output.content[: ERROR_BYTES + 1])
    if _is_short(text, ERROR_BYTES):
        return text.strip() or "The tool failed and did not say why."
    return f"{_beginning(text.encode(), ERROR_BYTES).decode()} [cut]"


def _beside(whole: bytes | None) -> Overflow | None:
    return None if whole is None else Overflow(content=whole[:STORED_BYTES], is_text=False)


def _binary(content: bytes) -> Bounded:
    stored = content[:STORED_BYTES]
    kept = "is stored" if len(stored) == len(content) else f"is stored up to {len(stored):,} bytes"
    return Bounded(
        text=f"[Binary output of {len(content):,} bytes {kept} and not shown here.]",
        overflow=Overflow(content=stored, is_text=False),
    )


def _note(*, shown: int, stored: int, whole: int) -> str:
    kept = "The whole output is stored" if stored >= whole else f"The first {stored:,} bytes are stored"
    return f"Output cut: {whole - shown:,} of {whole:,} bytes are not shown here. {kept}."


def _is_short(text: str, limit: int) -> bool:
    return len(text) <= limit and (4 * len(text) <= limit or len(text.encode()) <= limit)


def _beginning(encoded: bytes, limit: int) -> bytes:
    """At most ``limit`` bytes, without half a character at the end."""
    if len(encoded) <= limit:
        return encoded
    end = limit
    while encoded[end] & 0xC0 == 0x80:
        end -= 1
    return encoded[:end]
