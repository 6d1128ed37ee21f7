"""From an event to stored data and back; what this version does not know is refused by name."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue, ValidationError

from schema.events import MANIFEST, EventData

_BY_KEY: Final[dict[tuple[str, int], type[EventData]]] = {
    (kind.type, kind.version): kind for kind in MANIFEST
}
_NEWEST: Final[dict[str, int]] = {}
for _kind in MANIFEST:
    _NEWEST[_kind.type] = max(_kind.version, _NEWEST.get(_kind.type, 0))


class UndecodableEvent(ValueError):
    """A stored event cannot be read by this version."""

    def __init__(self, message: str, *, event_type: str, version: int) -> None:
        self.event_type = event_type
        self.version = version
        super().__init__(message)


class UnknownEventType(UndecodableEvent):
    """No version of this type is known here."""

    def __init__(self, *, event_type: str, version: int) -> None:
        super().__init__(
            f"Unknown event type {event_type!r}. The log was written by another version of Holdfast; "
            "run the version that wrote it, or a newer one.",
            event_type=event_type,
            version=version,
        )


class UnknownEventVersion(UndecodableEvent):
    """The type is known, this version of it is not."""

    def __init__(self, *, event_type: str, version: int, newest: int) -> None:
        super().__init__(
            f"Event {event_type!r} has version {version}; this Holdfast knows versions up to {newest}. "
            "Upgrade Holdfast to read this log.",
            event_type=event_type,
            version=version,
        )


class MalformedEvent(UndecodableEvent):
    """The data does not have the shape of its type and version."""

    def __init__(self, *, event_type: str, version: int, detail: str) -> None:
        super().__init__(
            f"Event {event_type!r} version {version} is malformed: {detail}. "
            "The row was damaged or written by hand; restore it from a backup.",
            event_type=event_type,
            version=version,
        )


def encode(event: EventData) -> dict[str, JsonValue]:
    """The data to store. ``decode`` of it with the event's type and version gives an equal event."""
    return event.to_json()


def decode(*, event_type: str, version: int, data: Mapping[str, JsonValue]) -> EventData:
    """The event that was encoded.

    Raises UnknownEventType, UnknownEventVersion or MalformedEvent; never guesses.
    """
    kind = _BY_KEY.get((event_type, version))
    if kind is None:
        newest = _NEWEST.get(event_type)
        if newest is None:
            raise UnknownEventType(event_type=event_type, version=version)
        raise UnknownEventVersion(event_type=event_type, version=version, newest=newest)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "data"
        raise MalformedEvent(
            event_type=event_type, version=version, detail=f"{where}: {first['msg']}"
        ) from None
