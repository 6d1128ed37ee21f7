"""The output items of a response while they are told: messages, reasoning, calls. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from pydantic import JsonValue

from schema import text
from sessions_app.providers import port, scrub, wire
from sessions_app.providers.parts import OpenPart
from sessions_app.providers.scrub import Scrubber

Fields = dict[str, JsonValue]

_HOSTED: Final = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
    }
)
"""Calls that the provider runs. Other kinds are skipped: nothing of ours offered them."""
_RESULTS: Final = ("output", "results", "outputs", "result")
_NO_INPUT: Final = frozenset({"id", "type", "status", "error", "name", *_RESULTS})
LONGEST_REPLAY: Final = 64 * 1024
"""A hosted call that is longer (an image) is told in words later, not sent back."""
LONGEST_OUTPUT: Final = 16 * 1024


class _Item(Protocol):
    @property
    def has_grown(self) -> bool:
        """Whether anything of it was told."""

    def begin(self) -> Iterator[port.Item]: ...

    def grow(self, kind: str, payload: Fields) -> Iterator[port.Item]: ...

    def close(self, item: Fields | None) -> Iterator[port.Item]:
        """The end of it. ``item`` is the whole item, which also holds what no event told."""


class Output:
    """All items of one response, by their place in it."""

    def __init__(self) -> None:
        self.has_any = False
        """Whether there is text or a call."""
        self.has_reasoning = False
        self.has_calls = False
        """Whether there is a call for us to run."""
        self._open: dict[str, _Item] = {}
        self._places: dict[str, str] = {}
        self._ended: set[str] = set()
        self._thought: str | None = None

    def added(self, payload: Fields) -> Iterator[port.Item]:
        item = payload.get("item")
        if isinstance(item, dict):
            yield from self._begin(self._place(payload), item)

    def grew(self, kind: str, payload: Fields) -> Iterator[port.Item]:
        place = self._place(payload)
        if place not in self._open:
            yield from self._begin(place, {"type": _type_of(kind), "id": payload.get("item_id")})
        item = self._open.get(place)
        if item is not None:
            yield from self._noted(item.grow(kind, payload))

    def told(self, kind: str, payload: Fields) -> Iterator[port.Item]:
        """A text as a whole; it counts where nothing of its item came before."""
        begun = self._open.get(self._place(payload))
        if begun is None or not begun.has_grown:
            yield from self.grew(kind, payload)

    def done(self, payload: Fields) -> Iterator[port.Item]:
        item = payload.get("item")
        if isinstance(item, dict):
            yield from self._end(self._place(payload), item)

    def rest(self, output: Iterable[Fields]) -> Iterator[port.Item]:
        """What the ended response holds beyond what its events told."""
        for index, item in enumerate(output):
            yield from self._end(self._place({"output_index": index, "item": item}), item)

    def closed(self) -> Iterator[port.Item]:
        for place in list(self._open):
            self._ended.add(place)
            yield from self._open.pop(place).close(None)

    def _place(self, payload: Fields) -> str:
        """Servers name an item by its index, its id, or both; without either it is the newest."""
        item = payload.get("item")
        item_id = payload.get("item_id") or (item.get("id") if isinstance(item, dict) else None)
        known = self._places.get(item_id) if isinstance(item_id, str) else None
        if known is not None:
            return known
        index = wire.count(payload.get("output_index"))
        place = str(len(self._places) if index is None else index)
        if index is None and not isinstance(item_id, str):
            return next(reversed(self._open), place)
        if isinstance(item_id, str) and item_id:
            self._places[item_id] = place
        return place

    def _begin(self, place: str, item: Fields) -> Iterator[port.Item]:
        if place in self._open or place in self._ended:
            return
        begun = self._made(place, item)
        if begun is not None:
            self._open[place] = begun
            yield from self._noted(begun.begin())

    def _made(self, place: str, item: Fields) -> _Item | None:
        match item.get("type"):
            case "message":
                return _Message(place, self._thought)
            case "reasoning":
                return _Reasoning(place)
            case "function_call":
                return _Call(place, item, self._thought)
            case str() as kind if kind in _HOSTED:
                return _Hosted(place, item, self._thought)
        return None

    def _end(self, place: str, item: Fields) -> Iterator[port.Item]:
        yield from self._begin(place, item)
        ending = self._open.pop(place, None)
        if ending is None:
            return
        self._ended.add(place)
        if item.get("type") == "reasoning":
            self._thought = _string(item.get("id")) or "?"
        yield from self._noted(ending.close(item))

    def _noted(self, items: Iterator[port.Item]) -> Iterator[port.Item]:
        for item in items:
            self.has_any = self.has_any or isinstance(item, port.TextDelta | port.CallStarted)
            self.has_reasoning = self.has_reasoning or isinstance(item, port.ReasoningDelta)
            self.has_calls = self.has_calls or (isinstance(item, port.CallStarted) and not item.hosted)
            yield item


class _Message:
    """A message: all its content is one text."""

    def __init__(self, place: str, thought: str | None) -> None:
        self._part = OpenPart(f"text:{place}")
        self._thought = thought
        self._length = 0

    @property
    def has_grown(self) -> bool:
        return self._length > 0

    def begin(self) -> Iterator[port.Item]:
        return iter(())

    def grow(self, kind: str, payload: Fields) -> Iterator[port.Item]:
        yield from self._feed(_string(payload.get("delta")))

    def close(self, item: Fields | None) -> Iterator[port.Item]:
        whole = {} if item is None else item
        yield from self._feed(_text_of(whole)[self._length :])
        if self._part.has_content:
            yield port.PartClosed(self._part.key, self._replay(whole))

    def _feed(self, fragment: str) -> Iterator[port.Item]:
        self._length += len(fragment)
        piece = self._part.feed(fragment) if fragment else ""
        if piece:
            yield port.TextDelta(self._part.key, piece)

    def _replay(self, item: Fields) -> Fields:
        phase = item.get("phase")
        kept = _kept(item, self._thought) if not self._part.has_altered else {}
        return {**kept, "phase": phase} if isinstance(phase, str) else kept


class _Reasoning:
    """A thought: its summary, or its text where a server tells it. It goes back as the item it was."""

    def __init__(self, place: str) -> None:
        self._part = OpenPart(f"reasoning:{place}")
        self._length = 0
        self._index: JsonValue = None

    @property
    def has_grown(self) -> bool:
        return self._length > 0

    def begin(self) -> Iterator[port.Item]:
        return iter(())

    def grow(self, kind: str, payload: Fields) -> Iterator[port.Item]:
        index = payload.get("summary_index", payload.get("content_index"))
        is_next = self._length > 0 and index != self._index
        self._index = index
        yield from self._feed(("\n\n" if is_next else "") + _string(payload.get("delta")))

    def close(self, item: Fields | None) -> Iterator[port.Item]:
        whole = {} if item is None else item
        yield from self._feed(_thought_of(whole)[self._length :])
        replay = _thought_item(whole)
        if replay and not self._part.has_content:
            yield port.ReasoningDelta(self._part.key, "")
        if replay or self._part.has_content:
            yield port.PartClosed(self._part.key, {"item": replay} if replay else {})

    def _feed(self, fragment: str) -> Iterator[port.Item]:
        self._length += len(fragment)
        piece = self._part.feed(fragment) if fragment else ""
        if piece:
            yield port.ReasoningDelta(self._part.key, piece)


class _Call:
    """A call of one of our tools."""

    def __init__(self, place: str, item: Fields, thought: str | None) -> None:
        self._key = f"call:{place}"
        self._call_id = _clean(item.get("call_id")) or _clean(item.get("id")) or f"call_{place}"
        self._name = _clean(item.get("name"))
        self._given = _string(item.get("arguments"))
        self._thought = thought
        self._scrubber = Scrubber()
        self._length = 0
        self._has_started = False

    @property
    def has_grown(self) -> bool:
        return self._length > 0

    def begin(self) -> Iterator[port.Item]:
        if self._name:
            self._has_started = True
            yield port.CallStarted(self._key, self._call_id, self._name)

    def grow(self, kind: str, payload: Fields) -> Iterator[port.Item]:
        fragment = _string(payload.get("delta"))
        if self._has_started:
            yield from self._feed(fragment)

    def close(self, item: Fields | None) -> Iterator[port.Item]:
        whole: Fields = {"arguments": self._given} if item is None else item
        if not self._has_started:
            self._call_id = _clean(whole.get("call_id")) or self._call_id
            self._name = _clean(whole.get("name"))
            yield from self.begin()
        if self._has_started:
            yield from self._feed(_string(whole.get("arguments"))[self._length :])
            yield port.PartClosed(self._key, _kept(whole, self._thought))

    def _feed(self, fragment: str) -> Iterator[port.Item]:
        self._length += len(fragment)
        piece = self._scrubber.feed(fragment)
        if piece:
            yield port.CallDelta(self._key, piece)


class _Hosted:
    """A call that the provider runs: its input and its result are told together at its end."""

    has_grown = True

    def __init__(self, place: str, item: Fields, thought: str | None) -> None:
        self._key = f"call:{place}"
        self._type = _string(item.get("type"))
        self._call_id = _clean(item.get("id")) or f"call_{place}"
        self._name = _clean(item.get("name")) or self._type.removesuffix("_call")
        self._thought = thought

    def begin(self) -> Iterator[port.Item]:
        yield port.CallStarted(self._key, self._call_id, self._name, hosted=True)

    def grow(self, kind: str, payload: Fields) -> Iterator[port.Item]:
        return iter(())

    def close(self, item: Fields | None) -> Iterator[port.Item]:
        """A call whose end was not told gets no result."""
        if item is None:
            return
        yield port.CallDelta(self._key, text.clean(_input_of(item)))
        yield port.PartClosed(self._key)
        status = item.get("status")
        error = item.get("error")
        if status == "failed" or error:
            yield port.CallResult(self._key, text.clean(_words(error) or "The call failed."), is_error=True)
        elif status in ("completed", None):
            output = text.clean(_output_of(item))[:LONGEST_OUTPUT]
            yield port.CallResult(self._key, output, replay=self._replay(item))

    def _replay(self, item: Fields) -> Fields:
        if not scrub.is_storable(item) or len(json.dumps(item)) > LONGEST_REPLAY:
            return {}
        return {"item": item} if self._thought is None else {"item": item, "after": self._thought}


def _type_of(kind: str) -> str:
    if "reasoning" in kind:
        return "reasoning"
    return "function_call" if "function_call" in kind else "message"


def _kept(item: Fields, thought: str | None) -> Fields:
    """The id that the item can be sent back under, and the reasoning that must go along with it."""
    item_id = _clean(item.get("id"))
    if not item_id or item_id != item.get("id") or len(item_id) > 64:
        return {}
    return {"id": item_id} if thought is None else {"id": item_id, "after": thought}


def _thought_item(item: Fields) -> Fields:
    """The reasoning as it goes back; empty when nothing of it is signed or kept by the provider."""
    item_id = item.get("id")
    if not isinstance(item_id, str) or not 0 < len(item_id) <= 64 or not scrub.is_storable(item):
        return {}
    kept: Fields = {"type": "reasoning", "id": item_id, "summary": item.get("summary") or []}
    if isinstance(encrypted := item.get("encrypted_content"), str) and encrypted:
        kept["encrypted_content"] = encrypted
    return kept


def _text_of(item: Fields) -> str:
    pieces = wire.objects(item.get("content"))
    return "".join(_string(piece.get("text")) or _string(piece.get("refusal")) for piece in pieces)


def _thought_of(item: Fields) -> str:
    told = wire.objects(item.get("summary")) or wire.objects(item.get("content"))
    return "\n\n".join(_string(piece.get("text")) for piece in told)


def _input_of(item: Fields) -> str:
    """What the call was given, as JSON."""
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        return arguments
    given = {name: value for name, value in item.items() if name not in _NO_INPUT}
    return json.dumps(given, ensure_ascii=False)


def _output_of(item: Fields) -> str:
    return next((_words(item[name]) for name in _RESULTS if item.get(name)), "")


def _words(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _clean(value: JsonValue) -> str:
    return text.clean(_string(value))


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
