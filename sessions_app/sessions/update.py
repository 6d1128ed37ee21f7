"""Changing a session's own fields."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from schema.events import AgentSwitched, ModelSwitched, RecoveryPolicy, SessionUpdated
from schema.limits import MAX_TITLE_CHARACTERS
from schema.text import clean
from sessions_app import identity
from sessions_app.agents import get_agent
from sessions_app.log import SessionTransaction, session_transaction
from sessions_app.models import Session
from sessions_app.sessions.names import checked_model


def update(
    *,
    session_id: str,
    now: datetime,
    title: str | None = None,
    archived: bool | None = None,
    pinned: bool | None = None,
    recovery_policy: RecoveryPolicy | Literal[""] | None = None,
    agent: str | None = None,
    model: str | None = None,
) -> Session:
    """Change what is given; what is already so makes no event. A switch applies to the next step.

    Raises InvalidValue for an unknown agent or an unusable model name, or log.SessionGone.
    """
    given = {
        "title": None if title is None else clean(title)[:MAX_TITLE_CHARACTERS],
        "archived": archived,
        "pinned": pinned,
        "recovery_policy": recovery_policy,
    }
    chosen = None if agent is None else get_agent(agent).name
    switched = None if model is None else checked_model(model)
    with session_transaction(session_id, now=now) as tx:
        _update_fields(tx, given)
        if chosen is not None and chosen != tx.session.agent:
            tx.append(AgentSwitched(message=identity.new_message_id(), agent=chosen))
        if switched is not None and switched != tx.session.model:
            tx.append(ModelSwitched(message=identity.new_message_id(), model=switched))
    tx.session.head_seq = tx.head_seq
    return tx.session


def _update_fields(tx: SessionTransaction, given: Mapping[str, object]) -> None:
    changed = {
        name: value
        for name, value in given.items()
        if value is not None and value != getattr(tx.session, name)
    }
    if changed:
        tx.append(SessionUpdated.model_validate(changed))
