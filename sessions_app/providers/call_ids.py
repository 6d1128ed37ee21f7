"""Ids of calls as providers take them. Pure: the same id is mapped alike for a call and its result.

An id that a provider refuses becomes its digest, never its beginning: two long ids may begin alike.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Final

CallIdRule = Callable[[str], str]

_COMMON: Final = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_NINE: Final = re.compile(r"[A-Za-z0-9]{9}\Z")
_HOSTED: Final = re.compile(r"[a-z]{1,8}toolu_[A-Za-z0-9_]{1,64}\Z")
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def common(call_id: str) -> str:
    """At most 40 letters, digits, ``_`` and ``-``: OpenAI, Anthropic and most servers like them."""
    return call_id if _COMMON.match(call_id) else f"call_{_digest(call_id).hex()[:32]}"


def nine(call_id: str) -> str:
    """Exactly nine letters and digits: Mistral."""
    if _NINE.match(call_id):
        return call_id
    number = int.from_bytes(_digest(call_id), "big")
    digits = []
    for _ in range(9):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def hosted(call_id: str) -> str:
    """What Anthropic wants of a call that it ran itself: its own prefix (``srvtoolu_``, ``mcptoolu_``)."""
    return call_id if _HOSTED.match(call_id) else f"srvtoolu_{_digest(call_id).hex()[:32]}"


def _digest(call_id: str) -> bytes:
    return hashlib.sha256(call_id.encode(errors="surrogatepass")).digest()
