"""What travels on the channel layer for one session: items in order, joined and bounded.

A packet is a dict that msgpack can carry: ``{"type": "live", "session": id, "items": [...]}``, with "since", the
time when its oldest delta was told, if it has one. An item is a list whose first element says what it is:

    ["event", seq, type, message, part, json]  a durable event, already encoded; "" where it has no such id
    ["hint", seq]                              an event too large for the layer: load it from the database
    ["delta", message, part, offset, text]     live text; offset counts code points before it
    ["status"]                                 something changed that has no event
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from sessions_app.log import StoredEvent

LARGEST_EVENT: Final = 64 * 1024
"""Bytes of JSON; what is larger is sent as a hint."""
LARGEST_DELTA: Final = 8 * 1024
"""Code points of one delta: a joined or huge fragment is cut into pieces of this size."""

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Item = list[Any]
Packet = dict[str, Any]


def to_json(value: Any) -> str:
    """Compact JSON that can always be sent as UTF-8."""
    text = _COMPACT.encode(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # A half of a surrogate pair, inside what a provider wants back untouched.
        return json.dumps(value, separators=(",", ":"))
    return text


def event_item(event: StoredEvent) -> Item:
    """The event, or a hint of it when it is large."""
    item = whole_event_item(event)
    encoded = item[5]
    if len(encoded) > LARGEST_EVENT or len(encoded.encode("utf-8")) > LARGEST_EVENT:
        return ["hint", event.seq]
    return item


def whole_event_item(event: StoredEvent) -> Item:
    """The event, however large."""
    encoded = to_json(event.to_json())
    return ["event", event.seq, event.type, _id(event, "message"), _id(event, "part"), encoded]


def _id(event: StoredEvent, name: str) -> str:
    identity = event.data.get(name)
    return identity if isinstance(identity, str) else ""


def joined(items: Iterable[Item]) -> Iterator[Item]:
    """The same items in the same order, with adjacent fragments of a part joined up to the largest delta."""
    run: list[Any] | None = None
    texts: list[str] = []
    end = 0
    for item in items:
        if run is not None and item[0] == "delta" and item[2] == run[2] and item[3] == end:
            texts.append(item[4])
            end += len(item[4])
            continue
        if run is not None:
            yield from _cut(run, "".join(texts))
        run = None
        if item[0] == "delta":
            run, texts, end = item, [item[4]], item[3] + len(item[4])
        else:
            yield item
    if run is not None:
        yield from _cut(run, "".join(texts))


def _cut(delta: Item, text: str) -> Iterator[Item]:
    _, message, part, offset, _ = delta
    for start in range(0, len(text), LARGEST_DELTA):
        yield ["delta", message, part, offset + start, text[start : start + LARGEST_DELTA]]


def packed(session_id: str, items: Iterable[Item], *, since: float | None = None) -> Iterator[Packet]:
    """Packets of at most about twice the largest event; a repeated status is told once in each."""
    batch: list[Item] = []
    size = 0
    for item in joined(items):
        if item[0] == "status" and item in batch:
            continue
        weight = _weight(item)
        if batch and size + weight > LARGEST_EVENT:
            yield _packet(session_id, batch, since)
            batch, size = [], 0
        batch.append(item)
        size += weight
    if batch:
        yield _packet(session_id, batch, since)


def _weight(item: Item) -> int:
    """Upper bound of the bytes an item takes: text has at most four bytes for a code point."""
    if item[0] == "event":
        return len(item[5])
    return 4 * len(item[4]) if item[0] == "delta" else 16


def _packet(session_id: str, items: list[Item], since: float | None) -> Packet:
    packet: Packet = {"type": "live", "session": session_id, "items": items}
    return packet if since is None else {**packet, "since": since}
