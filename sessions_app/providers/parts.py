"""Parts of an answer while their fragments arrive."""

from typing import Final

from sessions_app.providers.scrub import Scrubber


class OpenPart:
    """One text or reasoning part; it begins with its first character that is no blank."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.has_content = False
        self._scrubber = Scrubber()
        self._blanks = ""

    @property
    def has_altered(self) -> bool:
        return self._scrubber.has_altered

    def feed(self, fragment: str) -> str:
        """What to pass on: clean, and nothing before there is something to read."""
        piece = self._scrubber.feed(fragment)
        if self.has_content:
            return piece
        piece = self._blanks + piece
        if not piece or piece.isspace():
            self._blanks = piece
            return ""
        self.has_content = True
        return piece


class ThinkTags:
    """Takes ``<think>...</think>`` out of content, where a server leaves a model's reasoning in the text.

    Only an answer that begins with the tag has such reasoning; anywhere else it is text about the tag.
    """

    OPEN: Final = "<think>"
    CLOSE: Final = "</think>"

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, fragment: str) -> list[tuple[bool, str]]:
        """Pieces in order, each with whether it is reasoning. Holds back no more than may be a tag."""
        if self._state == "text":
            return [(False, fragment)]
        self._held += fragment
        if self._state == "start":
            begun = self._held.lstrip()
            if self.OPEN.startswith(begun):
                return []
            if not begun.startswith(self.OPEN):
                return self._as_text()
            self._state = "thought"
            self._held = begun.removeprefix(self.OPEN)
        return self._thought()

    def close(self) -> list[tuple[bool, str]]:
        """What was held back: the beginning of a tag that never came is what it says."""
        held, self._held = self._held, ""
        return [(self._state == "thought", held)] if held else []

    def _as_text(self) -> list[tuple[bool, str]]:
        self._state = "text"
        held, self._held = self._held, ""
        return [(False, held)] if held else []

    def _thought(self) -> list[tuple[bool, str]]:
        thought, tag, rest = self._held.partition(self.CLOSE)
        if tag:
            self._held = rest
            return [(True, thought), *self._as_text()]
        kept = _overlap(self._held, self.CLOSE)
        thought, self._held = self._held[: len(self._held) - kept], self._held[len(self._held) - kept :]
        return [(True, thought)]


def _overlap(words: str, tag: str) -> int:
    """How many characters at the end of the words may be the beginning of the tag."""
    for length in range(min(len(words), len(tag) - 1), 0, -1):
        if tag.startswith(words[-length:]):
            return length
    return 0
