"""Parts of an answer while their fragments arrive."""

from typing import Final

from sessions_app.providers.scrub import Scrubber

MAX_LEADING_BLANKS: Final = 10_000
"""Of what comes before the first character; a server that sends nothing but blanks fills no memory."""


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
            self._blanks = piece[:MAX_LEADING_BLANKS]
            return ""
        self.has_content = True
        return piece
