"""What text may enter: no NUL, no lone surrogate."""

import re
from typing import Final

_PAIR: Final = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_HALF: Final = re.compile("[\ud800-\udfff]+")


def _join(pair: re.Match[str]) -> str:
    high, low = (ord(half) for half in pair.groups())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def clean(text: str) -> str:
    """The text without what neither PostgreSQL nor UTF-8 can store.

    Surrogate pairs that arrived as two halves are joined first; then NUL and halves without a partner
    are dropped. Cleaning clean text gives the same text.
    """
    if _HALF.search(text) is not None:
        text = _HALF.sub("", _PAIR.sub(_join, text))
    return text.replace("\x00", "")


class Cleaner:
    """Cleans text that arrives in fragments: a pair that was cut between two of them is joined."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, fragment: str) -> str:
        """The clean text of this fragment; a high surrogate at its end waits for the next one."""
        joined = self._half + fragment
        self._half = ""
        if joined and "\ud800" <= joined[-1] <= "\udbff":
            self._half, joined = joined[-1], joined[:-1]
        return clean(joined)
