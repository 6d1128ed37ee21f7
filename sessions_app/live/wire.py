"""Frames of the embedded layer: msgpack arrays ``[op, key, payload]`` one after the other on a stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgpack

PUBLISH: Final = 0
JOIN: Final = 1
LEAVE: Final = 2

LARGEST_PAYLOAD: Final = 1 << 20
LONGEST_KEY: Final = 200
_LARGEST_BUFFER: Final = 4 << 20


class MalformedFrame(Exception):
    """The peer does not speak this protocol; its connection is of no use any more."""


@dataclass(frozen=True)
class Frame:
    op: int
    key: str
    payload: bytes


def pack(op: int, key: str, payload: bytes = b"") -> bytes:
    packed: bytes = msgpack.packb([op, key, payload])
    return packed


class FrameReader:
    """Cuts what arrives into frames, whatever the pieces it arrives in."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(
            max_buffer_size=_LARGEST_BUFFER,
            max_str_len=LONGEST_KEY,
            max_bin_len=LARGEST_PAYLOAD,
            max_array_len=3,
            max_map_len=0,
            max_ext_len=0,
        )

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that ``data`` completes. Raises MalformedFrame after the last good one."""
        try:
            self._unpacker.feed(data)
            for value in self._unpacker:
                yield _frame(value)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise MalformedFrame(str(error) or type(error).__name__) from None


def _frame(value: Any) -> Frame:
    match value:
        case [int(op), str(key), bytes(payload)] if op in (PUBLISH, JOIN, LEAVE) and key:
            return Frame(op, key, payload)
    raise MalformedFrame("not a frame")


def encode(message: dict[str, Any]) -> bytes:
    """A message as payload. Raises TypeError or ValueError for what msgpack cannot carry."""
    payload: bytes = msgpack.packb(message)
    return payload


def decode(payload: bytes) -> dict[str, Any] | None:
    """The message, or None for bytes that are none."""
    try:
        message = msgpack.unpackb(payload)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
    return message if isinstance(message, dict) and isinstance(message.get("type"), str) else None
