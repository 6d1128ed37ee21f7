"""The one write primitive: every durable change of a session happens in a ``session_transaction``."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction

from schema import codec
from schema.events import EventData
from sessions_app.log import listeners, projector
from sessions_app.log.errors import FenceLost, SessionGone
from sessions_app.log.read import StoredEvent
from sessions_app.models import Session, SessionEvent, statements

_ONE_WRITER: Final = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class Held:
    """A worker's claim to write execution facts for a session, proved by the fence."""

    session_id: str
    worker_id: str
    fence: int


class SessionTransaction:
    """An open write transaction on one session whose row is locked."""

    def __init__(self, session: Session, *, now: datetime) -> None:
        self.session = session
        self.now = now
        self.events: list[StoredEvent] = []
        self._head_seq = session.head_seq
        self._changed: dict[str, Any] = {}

    @property
    def head_seq(self) -> int:
        """The seq of the newest event, those appended here included."""
        return self._head_seq

    def append(self, event: EventData) -> int:
        """Store the event at the next seq and project it. Returns the seq."""
        self._head_seq += 1
        stored = StoredEvent(
            session_id=self.session.pk,
            seq=self._head_seq,
            type=event.type,
            version=event.version,
            data=codec.encode(event),
            time=self.now,
        )
        self.events.append(stored)
        projector.project(self, event, seq=stored.seq, at=stored.time)
        return stored.seq

    def set(self, **columns: Any) -> None:
        """Change columns of the session row; they are written once, with head_seq."""
        for name, value in columns.items():
            setattr(self.session, name, value)
        self._changed.update(columns)

    def flush(self) -> None:
        if self.events:
            statements.insert(
                *(
                    SessionEvent(
                        session_id=event.session_id,
                        seq=event.seq,
                        type=event.type,
                        version=event.version,
                        data=event.data,
                        time=event.time,
                    )
                    for event in self.events
                )
            )
            self._changed["head_seq"] = self._head_seq
        if self._changed:
            statements.update(Session, {"pk": self.session.pk}, self._changed)


@contextmanager
def session_transaction(
    session_id: str, *, now: datetime, held: Held | None = None
) -> Iterator[SessionTransaction]:
    """Lock the session, let the caller append events and change rows, commit all of it or nothing.

    With ``held`` the caller acts as owner: owner and fence are compared under the lock. Subscribers are
    told after the commit and only then. A crash at any instant leaves all or nothing.

    Raises SessionGone when the session does not exist, FenceLost when ``held`` is over; both before the
    body runs.
    """
    with _commit_then_tell(now=now, lock=lambda: _locked(session_id, held)) as tx:
        yield tx


@contextmanager
def begin_log(session: Session, *, now: datetime) -> Iterator[SessionTransaction]:
    """Insert a new session and write its first events in the same way.

    Raises django.db.IntegrityError when a session with this id appeared meanwhile.
    """

    def insert() -> Session:
        session.save(force_insert=True)
        return session

    with _commit_then_tell(now=now, lock=insert) as tx:
        yield tx


@contextmanager
def _commit_then_tell(*, now: datetime, lock: Any) -> Iterator[SessionTransaction]:
    with _writers_turn(), transaction.atomic(durable=True):
        tx = SessionTransaction(lock(), now=now)
        yield tx
        tx.flush()
    if tx.events:
        listeners.tell(tx.session.pk, tx.events)


def _writers_turn() -> AbstractContextManager[Any]:
    """On SQLite the threads of one process queue here, in the order they came.

    Its busy handler sleeps and is unfair: one of many waiting threads can starve for seconds.
    """
    return _ONE_WRITER if connection.vendor == "sqlite" else nullcontext()


def _locked(session_id: str, held: Held | None) -> Session:
    """The locked row. SQLite needs no row lock: BEGIN IMMEDIATE took the database's write lock."""
    session = statements.first(Session, {"pk": session_id}, lock=True)
    if session is None:
        raise SessionGone(session_id=session_id)
    if held is not None and (session.owner_id, session.fence) != (held.worker_id, held.fence):
        raise FenceLost(session_id=session_id, worker_id=held.worker_id, fence=held.fence)
    return session
