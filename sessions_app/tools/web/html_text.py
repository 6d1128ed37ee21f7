"""The text of HTML, in one pass whose time grows with its length only, whoever wrote it.

Parsers that build a tree, and the standard library's, can be made to take minutes by a page that was written
to do that, and they do not let other threads run meanwhile. Text needs no tree.
"""

import html
import re
from collections.abc import Iterator
from typing import Final

MAX_TITLE_CHARACTERS: Final = 300

_MARK: Final = re.compile(r"<(?=[a-zA-Z/!?])")
_NAME: Final = re.compile(r"[a-zA-Z][^\s/>]*")
_TAG_END: Final = re.compile(r"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+>")
"""To the > that ends a tag: one in a quoted value does not."""
_BLANKS: Final = re.compile(r"[ \t\r\f\v\u00a0]+")
_MANY_LINES: Final = re.compile(r"\n(?:[ ]*\n)+")
_LOWER: Final = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

_RAW: Final = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
"""Elements whose content is no markup, up to their end tag."""
_UNREAD: Final = frozenset({"svg", "math", "template", "noscript", "object", "canvas", "select"})
_BLOCK_NAMES: Final = """
    address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol option p pre section
    summary table tbody tfoot thead tr ul
"""
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_CELLS: Final = frozenset({"td", "th"})


def read(markup: str) -> str:
    """Title, an empty line, and the text with a line for each block."""
    reader = _Reader(markup)
    text = _tidy("".join(reader.pieces()))
    title = " ".join(_unescaped(reader.title[:MAX_TITLE_CHARACTERS]).split())
    return f"{title}\n\n{text}".strip() if title else text


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a character reference of thousands of digits
        return text


def _tidy(text: str) -> str:
    lines = (_BLANKS.sub(" ", line).strip() for line in text.split("\n"))
    return _MANY_LINES.sub("\n\n", "\n".join(lines)).strip()


class _Reader:
    """Goes once from the first character to the last; what is never closed swallows the rest, as in browsers."""

    def __init__(self, markup: str) -> None:
        self.title = ""
        self._markup = markup
        self._lower = markup.translate(_LOWER)
        self._at = 0
        self._unread: str = ""
        self._depth = 0

    def pieces(self) -> Iterator[str]:
        while self._at < len(self._markup):
            mark = _MARK.search(self._markup, self._at)
            start = mark.start() if mark else len(self._markup)
            if start > self._at and not self._depth:
                yield _flowing(self._markup[self._at : start])
            self._at = start
            yield from self._markup_piece()

    def _markup_piece(self) -> Iterator[str]:
        if self._lower.startswith("<!--", self._at):
            self._skip_past("-->", self._at + 4)
        elif name := _NAME.match(self._lower, self._at + 1):
            yield from self._open(name[0], name.end())
        elif self._lower.startswith("</", self._at) and (name := _NAME.match(self._lower, self._at + 2)):
            yield from self._close(name[0], name.end())
        else:
            self._skip_past(">", self._at)

    def _open(self, name: str, at: int) -> Iterator[str]:
        self._end_tag(at)
        if name in _RAW:
            self._raw(name)
        elif name in _UNREAD and self._unread in ("", name):
            self._unread = name
            self._depth += 1
        elif not self._depth:
            yield _break(name)

    def _close(self, name: str, at: int) -> Iterator[str]:
        self._end_tag(at)
        if self._depth and name == self._unread:
            self._depth -= 1
            self._unread = name if self._depth else ""
        elif not self._depth:
            yield _break(name)

    def _raw(self, name: str) -> None:
        end = self._found(f"</{name}", self._at)
        if name == "title" and not self.title:
            self.title = self._markup[self._at : end]
        self._at = end

    def _end_tag(self, at: int) -> None:
        end = _TAG_END.match(self._markup, at)
        self._at = end.end() if end else len(self._markup)

    def _skip_past(self, what: str, at: int) -> None:
        self._at = min(self._found(what, at) + len(what), len(self._markup))

    def _found(self, what: str, at: int) -> int:
        found = self._lower.find(what, at)
        return found if found >= 0 else len(self._markup)


def _flowing(text: str) -> str:
    """Text between tags: its line ends are blanks."""
    return _unescaped(text.replace("\n", " ").replace("\r", " "))


def _break(name: str) -> str:
    if name in _BLOCKS:
        return "\n"
    return "\t" if name in _CELLS else ""
