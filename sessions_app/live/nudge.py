"""Nudges: "look now" from a web process to the worker that owns a session. They may be lost."""


def interrupt(*, worker_id: str, session_id: str) -> None:
    """Tell the worker that a durable interrupt request waits for it."""
