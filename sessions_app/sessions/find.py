"""Finding what belongs to a user. Ownership is part of every query."""

from typing import TYPE_CHECKING

from django.db.models import Prefetch, Q

from schema.ids import is_client_session_id
from schema.problems import SessionNotFound
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionInput, SessionMessage

if TYPE_CHECKING:
    from django.db.models import QuerySet


def get(*, user_id: int, session_id: str) -> Session:
    """The user's session with its owner's row. Raises SessionNotFound, also for another user's."""
    if not is_client_session_id(session_id):
        raise SessionNotFound(session_id)
    session = Session.objects.select_related("owner").filter(pk=session_id, user_id=user_id).first()
    if session is None:
        raise SessionNotFound(session_id)
    return session


def listed(*, user_id: int, archived: bool = False, query: str = "") -> "QuerySet[Session]":
    """The user's sessions, newest activity first. ``query`` is looked for in the title."""
    rows = Session.objects.select_related("owner").filter(user_id=user_id, archived=archived)
    if query:
        rows = rows.filter(title__icontains=query)
    return rows.order_by("-active_at", "-id")


def messages_of(session: Session) -> "QuerySet[SessionMessage]":
    """The visible transcript in order, with the parts and attempts of each message."""
    visible = SessionMessage.objects.filter(session_id=session.pk, reverted_seq=None)
    return with_contents(visible).order_by("seq")


def with_contents(messages: "QuerySet[SessionMessage]") -> "QuerySet[SessionMessage]":
    """The same messages, with the parts and attempts of each for two statements more."""
    return messages.prefetch_related(
        Prefetch("parts", queryset=MessagePart.objects.order_by("index").select_related("checkpoint")),
        Prefetch("attempts", queryset=ProviderAttempt.objects.order_by("ordinal", "prepared_at")),
    )


def prompts_of(session: Session, *, state: str = "pending") -> "QuerySet[SessionInput]":
    """The session's inputs in one state (pending, promoted, withdrawn, all), in admission order."""
    states = {
        "pending": Q(promoted_seq=None, withdrawn_seq=None),
        "promoted": Q(promoted_seq__isnull=False),
        "withdrawn": Q(withdrawn_seq__isnull=False),
        "all": Q(),
    }
    return SessionInput.objects.filter(states[state], session_id=session.pk).order_by("admitted_seq")


def attempts_of(*, user_id: int, session_id: str | None = None) -> "QuerySet[ProviderAttempt]":
    """The user's attempts, newest first."""
    rows = ProviderAttempt.objects.filter(_owned(user_id, session_id))
    return rows.order_by("-prepared_at", "-id")


def calls_of(*, user_id: int, session_id: str | None = None) -> "QuerySet[MessagePart]":
    """The user's tool calls, newest first."""
    rows = MessagePart.objects.filter(_owned(user_id, session_id), kind="tool")
    return rows.order_by("-started_at", "-id")


def _owned(user_id: int, session_id: str | None) -> Q:
    """All rows of a user, or those of one session of theirs; each from the index that has them in order."""
    if session_id is None:
        return Q(user_id=user_id)
    return Q(session_id=session_id, session__user_id=user_id)
