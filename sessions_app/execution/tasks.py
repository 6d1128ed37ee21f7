"""The background task: a wake hands its session to this process's coordinator and is done."""

import logging

from django.utils import timezone

from sessions_app.execution import coordinator, stages
from sessions_app.log import SessionGone

logger = logging.getLogger(__name__)


def drain(session_id: str) -> None:
    """Look at this session. Repeating or losing it does no harm.

    Raises coordinator.NoRoom when the worker is full, so that the task stays unacknowledged.
    """
    try:
        if not coordinator.hand_over(session_id):
            stages.rewake(session_id=session_id, now=timezone.now())
    except SessionGone:
        return
    except Exception as failed:
        # The queue tells only that a task failed: the text of an error may repeat what people wrote.
        logger.warning("drain.not_started", extra={"session": session_id, "error": type(failed).__name__})
        raise
