"""What a socket or stream may do for its user: the owner is checked on joining and on every action."""

import re
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User

from schema.ids import MAX_LENGTH
from schema.problems import SessionNotFound
from sessions_app import sessions
from sessions_app.access import rates
from sessions_app.live.requests import InterruptRequest, PromptRequest
from sessions_app.models import statements
from sessions_app.sessions.belongs import belongs

_SESSION_ID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_LENGTH}}}\Z")


def check(*, user_id: int, session_id: str) -> None:
    """Raises SessionNotFound for all but the user's own, also for a user who may not sign in any more."""
    if not (_SESSION_ID.match(session_id) and is_active(user_id) and belongs(session_id, user_id=user_id)):
        raise SessionNotFound(session_id)


def is_active(user_id: int) -> bool:
    return statements.exists(User, {"pk": user_id, "is_active": True})


def spend(user_id: int) -> None:
    """Count a frame of the user, as a request is counted. Raises Throttled."""
    standing = rates.spend_as_user(user_id)
    if standing is not None:
        standing.require()


def prompt(*, user_id: int, session_id: str, request: PromptRequest, now: datetime) -> dict[str, Any]:
    """Admit the prompt; returns its shape. Raises what sessions.prompt raises, SessionNotFound and Throttled."""
    spend(user_id)
    check(user_id=user_id, session_id=session_id)
    admission = sessions.prompt(
        session_id=session_id,
        message_id=request.id,
        text=request.text,
        delivery=request.delivery,
        now=now,
    )
    return sessions.prompt_shape(admission.prompt)


def interrupt(*, user_id: int, session_id: str, request: InterruptRequest, now: datetime) -> bool:
    """Stop what runs. False when nothing did. Raises SessionNotFound, log.SessionGone or Throttled."""
    spend(user_id)
    check(user_id=user_id, session_id=session_id)
    return sessions.interrupt(session_id=session_id, now=now, resume=request.resume)
