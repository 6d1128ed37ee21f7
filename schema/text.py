"""What text may enter: no NUL, no lone surrogate."""

import re
from typing import Final

_PAIR: Final = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def _join(pair: re.Match[str]) -> str:
    high, low = (ord(half) for half in pair.groups())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def clean(text: str) -> str:
    """The text without what neither PostgreSQL nor UTF-8 can store.

    Surrogate pairs that arrived as two halves are joined first; then NUL and halves without a partner
    are dropped. Cleaning clean text gives the same text.
    """
    if _UNSTORABLE.search(text) is None:
        return text
    return _UNSTORABLE.sub("", _PAIR.sub(_join, text))
