"""One reader's view of a session: from what arrives in any order, with losses and repeats, to what it is sent.

Pure: no clock, no I/O. What it lacks it says (``is_behind``, ``gaps``); whoever drives it brings that from
the database. It guesses nothing: an event is sent after the one before it, a fragment where the text ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sessions_app.live import frames
from sessions_app.live.frames import Frame
from sessions_app.live.packets import Item

MOST_EARLY_EVENTS: Final = 500
MOST_HELD_CHARACTERS: Final = 256 * 1024
MOST_STRANGERS: Final = 50
MOST_CLOSED: Final = 1000

_OPENS: Final = frozenset({"text.started", "reasoning.started"})
_CLOSES: Final = frozenset({"text.ended", "reasoning.ended"})


@dataclass(frozen=True, kw_only=True)
class Text:
    """The stored text so far of an open part."""

    message: str
    part: str
    text: str


@dataclass(eq=False)
class _Part:
    """An open part: how many code points the reader was sent, and fragments that come after a gap."""

    message: str
    length: int = 0
    held: dict[int, str] = field(default_factory=dict)
    has_lost: bool = False
    """Fragments after a gap were let go; there is more text than was sent."""

    @property
    def has_gap(self) -> bool:
        return bool(self.held) or self.has_lost


class Follower:
    """Follows one session from ``seq`` on. ``take_frames`` gives what is to be sent since the last call."""

    def __init__(self, *, after: int) -> None:
        self.seq = after
        """The seq of the newest event that was sent."""
        self.head = after
        """The highest seq that is known to be stored."""
        self._out: list[Frame] = []
        self._parts: dict[str, _Part] = {}
        self._closed: dict[str, None] = {}
        self._early: dict[int, Item] = {}
        self._strangers: dict[str, _Part] = {}
        self._asked: frozenset[str] = frozenset()
        self._held_characters = 0

    # What it has, and what it lacks

    def take_frames(self) -> list[Frame]:
        out, self._out = self._out, []
        return out

    @property
    def is_behind(self) -> bool:
        """Whether stored events, or the start of a part that is spoken of, have not been sent."""
        return self.head > self.seq or bool(self._strangers)

    def gaps(self) -> dict[str, int]:
        """Open parts with missing text, with the length that was sent."""
        return {part_id: part.length for part_id, part in self._parts.items() if part.has_gap}

    def open_lengths(self) -> dict[str, int]:
        return {part_id: part.length for part_id, part in self._parts.items()}

    # What the layer brings

    def take(self, items: Iterable[Item]) -> None:
        for item in items:
            match item:
                case ["event", int(seq), str(), str(), str(), str()]:
                    self._event(seq, item)
                case ["hint", int(seq)]:
                    self.head = max(self.head, seq)
                case ["delta", str(message), str(part_id), int(offset), str(text)]:
                    self._delta(message, part_id, offset, text)

    def _event(self, seq: int, item: Item) -> None:
        self.head = max(self.head, seq)
        if seq > self.seq + 1:
            if len(self._early) < MOST_EARLY_EVENTS:
                self._early[seq] = item
            return
        following: Item | None = item if seq == self.seq + 1 else None
        while following is not None:
            self._send_event(following)
            following = self._early.pop(self.seq + 1, None)
        if len(self._early) and min(self._early) <= self.seq:
            self._early = {early: kept for early, kept in self._early.items() if early > self.seq}

    def _send_event(self, item: Item) -> None:
        _, seq, kind, message, part_id, json = item
        self.seq = seq
        self._out.append(frames.event(seq=seq, json=json))
        if kind in _OPENS:
            self._open(part_id, message)
        elif kind in _CLOSES:
            self._close(part_id)

    def _open(self, part_id: str, message: str) -> _Part:
        part = self._parts.setdefault(part_id, _Part(message))
        stranger = self._strangers.pop(part_id, None)
        if stranger is not None:
            part.held.update(stranger.held)
            part.has_lost = part.has_lost or stranger.has_lost
            self._catch_up(part_id, part)
        return part

    def _close(self, part_id: str) -> None:
        for where in (self._parts, self._strangers):
            part = where.pop(part_id, None)
            if part is not None:
                self._forget_held(part)
        self._closed[part_id] = None
        if len(self._closed) > MOST_CLOSED:
            del self._closed[next(iter(self._closed))]

    def _delta(self, message: str, part_id: str, offset: int, text: str) -> None:
        part = self._parts.get(part_id)
        if part is not None:
            self._fragment(part_id, part, offset, text)
        elif part_id not in self._closed and len(self._strangers) < MOST_STRANGERS:
            self._hold(self._strangers.setdefault(part_id, _Part(message)), offset, text)

    def _fragment(self, part_id: str, part: _Part, offset: int, text: str) -> None:
        if offset > part.length:
            self._hold(part, offset, text)
            return
        self._extend(part_id, part, offset, text)
        self._catch_up(part_id, part)

    def _extend(self, part_id: str, part: _Part, offset: int, text: str) -> None:
        """Send what the fragment adds to the text, if it adds any."""
        fresh = text[part.length - offset :]
        if fresh:
            self._out.append(frames.delta(message=part.message, part=part_id, offset=part.length, text=fresh))
            part.length += len(fresh)

    def _hold(self, part: _Part, offset: int, text: str) -> None:
        """Keep a fragment that comes too early; when too many wait, the stored text will bring them."""
        known = part.held.get(offset, "")
        if len(text) <= len(known):
            return
        if self._held_characters + len(text) > MOST_HELD_CHARACTERS:
            part.has_lost = True
            return
        self._held_characters += len(text) - len(known)
        part.held[offset] = text

    def _catch_up(self, part_id: str, part: _Part) -> None:
        """Send the held fragments that the text has reached."""
        for offset in sorted(part.held):
            if offset > part.length:
                return
            text = part.held.pop(offset)
            self._held_characters -= len(text)
            self._extend(part_id, part, offset, text)

    def _forget_held(self, part: _Part) -> None:
        self._held_characters -= sum(map(len, part.held.values()))
        part.held.clear()

    # What the database brings

    def start_load(self) -> None:
        """A load begins: whatever it does not explain of what is unknown now, is over."""
        self._asked = frozenset(self._strangers)

    def loaded(self, *, events: Iterable[Item], texts: Sequence[Text], is_last: bool) -> None:
        """Events after ``seq``, and the open parts as they were stored no later than the events.

        Pages that are not the last bring no texts.
        """
        for item in events:
            self._event(item[1], item)
        if not is_last:
            return
        for text in texts:
            self._loaded_text(text)
        for part_id in self._asked & self._strangers.keys():
            self._close(part_id)

    def _loaded_text(self, stored: Text) -> None:
        if stored.part in self._closed:
            return
        if stored.part in self._parts:
            self.stored_text(stored)
            return
        self._out.append(frames.opened(message=stored.message, part=stored.part, text=stored.text))
        self._parts[stored.part] = _Part(stored.message, len(stored.text))
        self._open(stored.part, stored.message)

    def stored_text(self, stored: Text) -> None:
        """A checkpoint of a part. One that is not ahead of what was sent changes nothing."""
        part = self._parts.get(stored.part)
        if part is None or len(stored.text) <= part.length:
            return
        if part.has_gap or part.length == 0:
            self._out.append(frames.opened(message=part.message, part=stored.part, text=stored.text))
            part.length = len(stored.text)
        else:
            self._extend(stored.part, part, 0, stored.text)
        part.has_lost = False
        self._catch_up(stored.part, part)
