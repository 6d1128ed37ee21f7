"""Tool calls out of the fragments of chat completions, whatever a server makes of index and id. Pure."""

import json
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from schema import text
from sessions_app.providers import port
from sessions_app.providers.scrub import Scrubber


class _Call:
    def __init__(self, *, ordinal: int, call_id: str | None, index: int | None) -> None:
        self.key = f"call:{ordinal}"
        self.call_id = call_id or f"call_{ordinal}"
        self.index = index
        self.name = ""
        self.has_started = False
        self._arguments: list[str] = []
        self._last_visible = ""
        self._scrubber = Scrubber()

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are a JSON object, so that more would belong to another call."""
        if self._last_visible != "}":
            return False
        try:
            return isinstance(json.loads("".join(self._arguments)), dict)
        except (ValueError, RecursionError):
            return False

    def add(self, *, name: str, arguments: str) -> Iterator[port.Item]:
        """Its items so far; arguments that come before the name wait for it."""
        self.name = self.name or name
        piece = self._scrubber.feed(arguments)
        self._arguments.append(piece)
        self._last_visible = piece.rstrip()[-1:] or self._last_visible
        if self.has_started:
            if piece:
                yield port.CallDelta(self.key, piece)
        elif self.name:
            self.has_started = True
            yield port.CallStarted(self.key, self.call_id, self.name)
            if whole := "".join(self._arguments):
                yield port.CallDelta(self.key, whole)


class Calls:
    """The calls of one answer.

    A known id is that call, a new id is a new call even on an index that is taken, and a fragment without an
    id goes on where its index points, else with the newest call. Servers that give no ids at all start a new
    call with a name after arguments that are whole.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    @property
    def has_any(self) -> bool:
        return bool(self._calls)

    @property
    def has_started(self) -> bool:
        return any(call.has_started for call in self._calls)

    def read(self, entries: Iterable[dict[str, JsonValue]]) -> Iterator[port.Item]:
        for entry in entries:
            function = entry.get("function")
            fields = function if isinstance(function, dict) else {}
            name = _name(fields.get("name"))
            arguments = _arguments(fields.get("arguments"))
            call = self._call_of(_id(entry.get("id")), _index(entry.get("index")), name, arguments)
            yield from call.add(name=name, arguments=arguments)

    def closed(self) -> list[port.Item]:
        return [port.PartClosed(call.key) for call in self._calls if call.has_started]

    def _call_of(self, call_id: str | None, index: int | None, name: str, arguments: str) -> _Call:
        if call_id is not None:
            known = self._by_id.get(call_id)
            if known is None:
                return self._new(call_id, index)
            return self._new(None, index) if _is_reused(known, index, name) else known
        pointed = None if index is None else self._by_index.get(index)
        call = pointed or (self._calls[-1] if self._calls else None)
        if call is None or _begins_another(call, name, arguments, is_pointed=pointed is not None):
            return self._new(None, index)
        if index is not None:
            self._by_index[index] = call
        return call

    def _new(self, call_id: str | None, index: int | None) -> _Call:
        call = _Call(ordinal=len(self._calls), call_id=call_id, index=index)
        self._calls.append(call)
        self._by_id[call.call_id] = call
        if index is not None:
            self._by_index[index] = call
        return call


def _is_reused(known: _Call, index: int | None, name: str) -> bool:
    """Whether a server gave one id to two calls: another index, with a name of its own."""
    return bool(name) and index is not None and known.index is not None and index != known.index


def _begins_another(call: _Call, name: str, arguments: str, *, is_pointed: bool) -> bool:
    if not name or not call.name:
        return False
    if name != call.name:
        return True
    return call.is_whole and (bool(arguments) or not is_pointed)


def _id(value: JsonValue) -> str | None:
    return text.clean(value) or None if isinstance(value, str) else None


def _index(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name(value: JsonValue) -> str:
    return text.clean(value) if isinstance(value, str) else ""


def _arguments(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
