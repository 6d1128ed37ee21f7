"""Reasoning in chat completions: plain fields, and OpenRouter's details, which it wants back. Pure."""

from collections.abc import Iterable
from typing import Final

from pydantic import JsonValue

from sessions_app.providers import wire

ECHOED_FIELD: Final = "reasoning_content"
"""DeepSeek and Kimi want this one back with the calls that it led to."""
DETAILS_FIELD: Final = "reasoning_details"
"""OpenRouter wants these back as they came, signatures and all."""

_PLAIN_FIELDS: Final = (ECHOED_FIELD, "reasoning", "reasoning_text", "thinking")
_GROWING: Final = ("text", "summary", "data")

Fields = dict[str, JsonValue]


class Details:
    """The ``reasoning_details`` of one reasoning part, put together from their fragments."""

    def __init__(self) -> None:
        self._entries: list[Fields] = []
        self._fragments: list[dict[str, list[str]]] = []

    def add(self, fragments: Iterable[Fields]) -> None:
        for fragment in fragments:
            if not self._entries or not _is_same(self._entries[-1], fragment):
                self._entries.append({})
                self._fragments.append({})
            for name, value in fragment.items():
                if name in _GROWING and isinstance(value, str):
                    self._fragments[-1].setdefault(name, []).append(value)
                elif value is not None:
                    self._entries[-1][name] = value

    def whole(self) -> list[JsonValue]:
        return [
            {**entry, **{name: "".join(pieces) for name, pieces in grown.items()}}
            for entry, grown in zip(self._entries, self._fragments, strict=True)
        ]


def _is_same(entry: Fields, fragment: Fields) -> bool:
    return all(fragment.get(name) in (None, entry.get(name)) for name in ("type", "index", "id"))


def plain(delta: Fields) -> tuple[str, str]:
    """The field in which a server tells reasoning, and what it says; both empty for none."""
    for field in _PLAIN_FIELDS:
        value = delta.get(field)
        if isinstance(value, str) and value:
            return field, value
    return "", ""


def told(details: Iterable[Fields]) -> str:
    """What a person may read of details."""
    return "".join(_string(each.get("text")) or _string(each.get("summary")) for each in details)


def details_of(delta: Fields) -> list[Fields]:
    return wire.objects(delta.get(DETAILS_FIELD))


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
