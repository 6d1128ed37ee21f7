"""Reading a session's log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from schema import codec
from schema.events import EventData
from sessions_app.models import Session, SessionEvent, statements

MAX_PAGE: Final = 500


@dataclass(frozen=True, kw_only=True)
class StoredEvent:
    """One row of the log."""

    session_id: str
    seq: int
    type: str
    version: int
    data: dict[str, JsonValue]
    time: datetime

    def decode(self) -> EventData:
        """The typed event. Raises schema.codec.UndecodableEvent for what this version does not know."""
        return codec.decode(event_type=self.type, version=self.version, data=self.data)

    def to_json(self) -> dict[str, JsonValue]:
        """The shape of contract section 3, Event."""
        return {
            "seq": self.seq,
            "type": self.type,
            "version": self.version,
            "time": self.time.isoformat().replace("+00:00", "Z"),
            "data": self.data,
        }


def stored(row: SessionEvent) -> StoredEvent:
    return StoredEvent(
        session_id=row.session_id,
        seq=row.seq,
        type=row.type,
        version=row.version,
        data=row.data,
        time=row.time,
    )


def events_after(session_id: str, *, after: int = 0, limit: int = MAX_PAGE) -> list[StoredEvent]:
    """Up to ``limit`` events with a seq greater than ``after``, in order, without a gap.

    An unknown session has no events.
    """
    where = {"session_id": session_id, "seq__gt": after}
    return [stored(row) for row in statements.fetch(SessionEvent, where, order_by="seq", limit=limit)]


def head_seq(session_id: str) -> int | None:
    """The newest sequence number, 0 before the first event, None when the session does not exist."""
    rows = statements.fetch_columns(Session, ("head_seq",), {"pk": session_id})
    return rows[0].head_seq if rows else None
