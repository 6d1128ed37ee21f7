"""Server-sent events out of bytes that arrive in any pieces. Pure.

Follows the event stream format of the HTML standard, and two habits of real servers: a ``data`` field that
is itself a comment (``data: : KEEP-ALIVE``) carries nothing, and neither does an empty one.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024

BOM: Final = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One dispatched event; the name is empty when the server gave none."""

    name: str
    data: str


class BadEventStream(Exception):
    """The bytes are no event stream that can be read on."""


class EventReader:
    """Turns bytes into events; how the bytes were split makes no difference.

    An event counts once its blank line arrived. What is left over at the end of the stream is dropped, as
    the format says: half an event proves nothing.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._rest = bytearray()
        self._size = 0
        self._name = ""
        self._data: list[str] = []
        self._at_start = True
        self._ended_with_cr = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that these bytes completed. Iterate to the end before feeding more.

        Raises BadEventStream, after the events before it, for invalid UTF-8 and for an event above the limit.
        """
        chunk = self._with_plain_line_ends(chunk)
        if b"\n" not in chunk:
            self._rest += chunk
        else:
            lines = bytes(self._rest + chunk).split(b"\n")
            self._rest = bytearray(lines.pop())
            for line in lines:
                if line:
                    self._take(line)
                elif event := self._dispatched():
                    yield event
                self._at_start = False
        self._check_size(len(self._rest))

    def close(self) -> None:
        """The stream ended. Raises BadEventStream when it ended inside a character."""
        _decoded(bytes(self._rest))

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if self._ended_with_cr and chunk:
            self._ended_with_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" not in chunk:
            return chunk
        self._ended_with_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes) -> None:
        self._check_size(len(line))
        text = _decoded(line.removeprefix(BOM) if self._at_start else line)
        name, _, value = text.partition(":")
        if name == "data":
            self._size += len(line)
            self._data.append(value.removeprefix(" "))
        elif name == "event":
            self._name = value.removeprefix(" ")

    def _dispatched(self) -> Event | None:
        data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
        event = Event(self._name, data)
        self._name = ""
        self._size = 0
        self._data = []
        return None if not data or data.isspace() or data.startswith(":") else event

    def _check_size(self, more: int) -> None:
        if self._size + more > self._max_event_bytes:
            raise BadEventStream(f"An event is longer than {self._max_event_bytes} bytes.")


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadEventStream("The stream is not valid UTF-8.") from error
