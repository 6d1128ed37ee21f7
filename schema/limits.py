"""What is refused, in one place: how large, and in what unit one says how often."""

from dataclasses import dataclass
from typing import Final

MAX_PROMPT_CHARACTERS: Final = 400_000
MAX_TITLE_CHARACTERS: Final = 200
MAX_NAME_CHARACTERS: Final = 200

MAX_BODY_BYTES: Final = 6 * 1024 * 1024
"""A request's body. The longest prompt fits even when every character is written as two ``\\u`` escapes."""

MAX_FRAME_BYTES: Final = MAX_BODY_BYTES
"""What a client may send on its socket at once."""


@dataclass(frozen=True)
class Rate:
    """So many requests in so many seconds."""

    requests: int
    seconds: int
