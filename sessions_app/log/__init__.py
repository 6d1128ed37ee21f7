"""The log: the one write primitive, the projector behind it, reading and replay."""

from sessions_app.log.errors import FenceLost, LogError, LogIncomplete, ProjectionConflict, SessionGone
from sessions_app.log.listeners import on_commit
from sessions_app.log.read import StoredEvent, events_after, head_seq
from sessions_app.log.transaction import Held, SessionTransaction, begin_log, session_transaction

__all__ = [
    "FenceLost",
    "Held",
    "LogError",
    "LogIncomplete",
    "ProjectionConflict",
    "SessionGone",
    "SessionTransaction",
    "StoredEvent",
    "begin_log",
    "events_after",
    "head_seq",
    "on_commit",
    "session_transaction",
]
