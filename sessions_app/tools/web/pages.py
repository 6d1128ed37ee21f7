"""The text of a document, as somebody would read it."""

import codecs
import re
from typing import Final

from schema.text import clean
from sessions_app.tools.web import html_text
from sessions_app.tools.web.fetch import Document

_DECLARED: Final = re.compile(
    rb"<meta[^>]{0,200}charset\s{0,5}=\s{0,5}[\"']?([a-zA-Z0-9_-]{1,30})", re.IGNORECASE
)
_ENCODINGS: Final = re.compile(
    r"(utf-8|utf-16|utf-32|ascii|iso8859|cp\d|koi8|mac-|gb|big5|shift_jis|euc_|iso2022|hz|tis-620)"
)
"""Encodings of pages. Python knows others by name that are no such thing, and slow."""


def text_of(document: Document) -> str:
    """Title and text of a page; other documents as they are."""
    text = _decoded(document)
    if "html" in document.media_type:
        text = html_text.read(text)
    return clean(text).strip()


def _decoded(document: Document) -> str:
    for name in (document.charset, _declared(document)):
        if name and (encoding := _encoding(name)):
            return document.content.decode(encoding, "replace")
    return document.content.decode("utf-8-sig", "replace")


def _declared(document: Document) -> str | None:
    if document.content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    found = _DECLARED.search(document.content, 0, 2048)
    return found[1].decode("ascii") if found else None


def _encoding(name: str) -> str | None:
    try:
        encoding = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    return encoding if _ENCODINGS.match(encoding) else None
