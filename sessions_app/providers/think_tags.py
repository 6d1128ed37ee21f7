"""Reasoning that a server leaves in the text, between tags, while its fragments arrive. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

Piece = tuple[bool, str]
"""Whether it is reasoning, and its text."""

_NAMES: Final = ("think", "thinking")
_OPENINGS: Final = {f"<{name}>": f"</{name}>" for name in _NAMES}
_LONGEST_OPENING: Final = max(map(len, _OPENINGS))
_CODE_INDENT: Final = 4
_SHORTEST_FENCE: Final = 3
_BLANKS: Final = re.compile(r"[ \t\n]+")


class ThinkTags:
    """Takes ``<think>...</think>`` out of content.

    The tag opens reasoning at the beginning of the answer, or of a line. Inside a line, in a code block, and
    in inline code it is text about the tag. Reasoning that is never closed is reasoning to the end.
    """

    def __init__(self) -> None:
        self._line = _Line()
        self._closing = ""
        self._held = ""
        self._last = ""
        self.has_opened = False
        """Whether there was a tag, also of reasoning without a word."""

    def feed(self, fragment: str) -> Iterator[Piece]:
        """Pieces in order, none of them empty. Holds back no more than may be a tag."""
        waiting = self._held + fragment
        at = begun = 0
        while at < len(waiting):
            is_thought = bool(self._closing)
            length = self._tag(waiting, at)
            if length:
                if at > begun:
                    yield (is_thought, waiting[begun:at])
                at = begun = at + length
                continue
            length = self._thought(waiting, at) if is_thought else self._text(waiting, at)
            if not length:
                break
            at += length
        if at > begun:
            yield (bool(self._closing), waiting[begun:at])
        self._held = waiting[at:]

    def close(self) -> Iterator[Piece]:
        """What was held back: the beginning of a tag that never came is what it says."""
        held, self._held = self._held, ""
        held = held.removeprefix(self._closing)
        if held:
            yield (bool(self._closing), held)

    def _tag(self, waiting: str, at: int) -> int:
        """The length of the tag that begins here; 0 for none, or for one that may still turn out to be."""
        if self._closing:
            return self._end_of_thought(waiting, at)
        if not self._line.is_at_head:
            return 0
        for opening, closing in _OPENINGS.items():
            if waiting.startswith(opening, at):
                self._closing, self._last = closing, ""
                self.has_opened = True
                return len(opening)
        return 0

    def _end_of_thought(self, waiting: str, at: int) -> int:
        behind = at + len(self._closing)
        if not waiting.startswith(self._closing, at):
            return 0
        if self._last == "`" and waiting[behind : behind + 1] in ("", "`"):
            # Quoted in inline code, if the quote ends right behind it.
            return 0
        length, self._closing = len(self._closing), ""
        self._line = _Line()
        return length

    def _text(self, waiting: str, at: int) -> int:
        """How much of what comes next is text; 0 if it may be a tag."""
        if self._line.is_at_head:
            head = waiting[at : at + _LONGEST_OPENING]
            if any(opening.startswith(head) for opening in _OPENINGS):
                return 0
        return self._line.take(waiting, at)

    def _thought(self, waiting: str, at: int) -> int:
        """How much of what comes next is reasoning; 0 if it may be the end of it."""
        end = waiting.find(self._closing, at)
        if end == at:
            if at + len(self._closing) == len(waiting):
                return 0
            end = at + len(self._closing)
        elif end < 0:
            end = len(waiting) - _overlap(waiting[at:], self._closing)
        self._last = waiting[end - 1] if end > at else self._last
        return end - at


@dataclass
class _Fence:
    mark: str
    length: int


class _Line:
    """Where in a line of Markdown the text is, and whether in a code block."""

    def __init__(self) -> None:
        self._fence: _Fence | None = None
        self._begin()

    def _begin(self) -> None:
        self._indent = 0
        self._mark = ""
        self._marks = 0
        self._is_in_head = True
        """Only blanks and the marks of a fence so far."""
        self._is_bare = True
        """Nothing but blanks behind the marks."""
        self._has_tick = False
        """A backtick behind the marks: then they are inline code."""

    @property
    def is_at_head(self) -> bool:
        """Whether a tag that comes next stands at the beginning of a line, outside code."""
        return self._is_in_head and not self._marks and self._fence is None and self._indent < _CODE_INDENT

    def take(self, waiting: str, at: int) -> int:
        """Read on from here, at most to the end of the line; how much was read."""
        if self._is_in_head and not self._marks and (blanks := _BLANKS.match(waiting, at)):
            return self._take_blanks(blanks.group())
        if self._is_in_head:
            self._take_in_head(waiting[at])
            length = 1
        else:
            end = waiting.find("\n", at) + 1 or len(waiting)
            said, length = waiting[at:end], end - at
            self._is_bare = self._is_bare and not said.strip()
            self._has_tick = self._has_tick or "`" in said
        if waiting[at + length - 1] == "\n":
            self._end()
        return length

    def _take_blanks(self, blanks: str) -> int:
        _, newline, indent = blanks.rpartition("\n")
        if newline:
            self._begin()
        self._indent += len(indent.expandtabs(_CODE_INDENT))
        return len(blanks)

    def _take_in_head(self, character: str) -> None:
        if character in "`~" and self._indent < _CODE_INDENT and self._mark in ("", character):
            self._mark = character
            self._marks += 1
        elif character != "\n":
            self._is_in_head = False
            self._is_bare = character in " \t"
            self._has_tick = character == "`"

    def _end(self) -> None:
        if self._fence is not None:
            is_end = self._mark == self._fence.mark and self._marks >= self._fence.length and self._is_bare
            self._fence = None if is_end else self._fence
        elif self._marks >= _SHORTEST_FENCE and not (self._mark == "`" and self._has_tick):
            self._fence = _Fence(self._mark, self._marks)
        self._begin()


def _overlap(words: str, tag: str) -> int:
    """How many characters at the end of the words may be the beginning of the tag."""
    for length in range(min(len(words), len(tag) - 1), 0, -1):
        if tag.startswith(words[-length:]):
            return length
    return 0
