"""The background task: a wake hands its session to this process's coordinator and is done."""

from django.utils import timezone

from sessions_app.execution import coordinator, stages
from sessions_app.log import SessionGone


def drain(session_id: str) -> None:
    """Look at this session. Repeating or losing it does no harm.

    Raises coordinator.NoRoom when the worker is full, so that the task stays unacknowledged.
    """
    if coordinator.hand_over(session_id):
        return
    try:
        stages.rewake(session_id=session_id, now=timezone.now())
    except SessionGone:
        return
