"""Why a write was refused; nothing was written."""


class LogError(Exception):
    """A durable change of a session did not happen."""

    def __init__(self, message: str, *, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(message)


class SessionGone(LogError):
    """The session was deleted, or never was."""

    def __init__(self, *, session_id: str) -> None:
        super().__init__(
            f"Session {session_id!r} does not exist any more. Stop working on it.", session_id=session_id
        )


class FenceLost(LogError):
    """Another worker owns the session by now, or nobody does: the caller may write nothing more."""

    def __init__(self, *, session_id: str, worker_id: str, fence: int) -> None:
        self.worker_id = worker_id
        self.fence = fence
        super().__init__(
            f"Worker {worker_id!r} lost session {session_id!r} (fence {fence} is over). "
            "Cancel the work and write nothing.",
            session_id=session_id,
        )


class ProjectionConflict(LogError):
    """An event does not fit the rows it changes, so neither event nor change was stored."""

    def __init__(self, *, session_id: str, event_type: str, target: str) -> None:
        self.event_type = event_type
        self.target = target
        super().__init__(
            f"Event {event_type!r} does not fit {target!r} of session {session_id!r}: "
            "the row is missing or already past that state. The transaction was rolled back.",
            session_id=session_id,
        )


class LogIncomplete(LogError):
    """Events are missing from a log, so that nothing can be rebuilt from it."""

    def __init__(self, *, session_id: str, seq: int) -> None:
        self.seq = seq
        super().__init__(
            f"Event {seq} of session {session_id!r} is missing. Rows of the log were deleted or lost; "
            "restore them from a backup.",
            session_id=session_id,
        )
