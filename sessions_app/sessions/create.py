"""Creating a session, or adopting the one that was created before."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError

from schema.events import RecoveryPolicy, SessionCreated
from schema.ids import is_client_session_id
from schema.limits import MAX_TITLE_CHARACTERS
from schema.problems import InvalidId, SessionIdUnavailable
from schema.text import clean
from sessions_app import identity
from sessions_app.agents import DEFAULT, get_agent
from sessions_app.log import begin_log
from sessions_app.models import Session, Tombstone
from sessions_app.sessions.names import checked_model


@dataclass(frozen=True, kw_only=True)
class Creation:
    """The session, and whether this call made it."""

    session: Session
    created: bool


def create(
    *,
    user_id: int,
    now: datetime,
    session_id: str | None = None,
    title: str = "",
    agent: str | None = None,
    model: str | None = None,
    recovery_policy: RecoveryPolicy | None = None,
) -> Creation:
    """A new session, or the user's own that has this id already, unchanged.

    The same id however often and however concurrently gives one session. Raises SessionIdUnavailable
    for an id that another user or a deleted session has, InvalidId, or InvalidValue for an unknown agent
    or a model name that cannot be used.
    """
    if session_id is not None:
        if not is_client_session_id(session_id):
            raise InvalidId(session_id)
        adopted = _adopt(session_id, user_id=user_id)
        if adopted is not None:
            return Creation(session=adopted, created=False)
    chosen = get_agent(agent or DEFAULT)
    session = Session(
        id=session_id or identity.new_session_id(),
        user_id=user_id,
        created_at=now,
        active_at=now,
    )
    event = SessionCreated(
        title=clean(title)[:MAX_TITLE_CHARACTERS],
        agent=chosen.name,
        model=checked_model(model or chosen.model),
        recovery_policy=recovery_policy,
    )
    try:
        with begin_log(session, now=now) as tx:
            tx.append(event)
    except IntegrityError:
        winner = _adopt(session.pk, user_id=user_id)
        if winner is None:
            raise
        return Creation(session=winner, created=False)
    session.head_seq = tx.head_seq
    return Creation(session=session, created=True)


def _adopt(session_id: str, *, user_id: int) -> Session | None:
    """The user's session with this id; None when nobody has it."""
    known = Session.objects.filter(pk=session_id).first()
    if known is not None and known.user_id == user_id:
        return known
    if known is not None or Tombstone.objects.filter(pk=session_id).exists():
        raise SessionIdUnavailable(session_id)
    return None
