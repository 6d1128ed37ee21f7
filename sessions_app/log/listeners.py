"""Who is told after a commit. Telling is advisory: what fails here was stored all the same."""

import logging
from collections.abc import Callable, Sequence

from sessions_app.log.read import StoredEvent

logger = logging.getLogger(__name__)

Listener = Callable[[str, Sequence[StoredEvent]], None]

_listeners: list[Listener] = []


def on_commit(listener: Listener) -> None:
    """Call ``listener(session_id, events)`` after every commit that stored events, in the committing thread.

    It must not block. Its failure is logged and changes nothing.
    """
    if listener not in _listeners:
        _listeners.append(listener)


def tell(session_id: str, events: Sequence[StoredEvent]) -> None:
    for listener in _listeners:
        try:
            listener(session_id, events)
        except Exception:
            logger.exception("log.listener.failed", extra={"session": session_id})
