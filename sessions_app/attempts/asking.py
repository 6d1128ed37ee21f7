"""Whether a provider can be asked what became of an attempt, and what its answer may change."""

from sessions_app.log import SessionTransaction
from sessions_app.models import ProviderAttempt, SessionMessage
from sessions_app.providers import port, registry


def find_askable(attempt: ProviderAttempt) -> port.Askable | None:
    """The provider that keeps the response of this attempt, if it can be asked for it."""
    return find_keeper(attempt.provider) if attempt.provider_response_id else None


def find_keeper(provider: str) -> port.Askable | None:
    """The provider of this name, if it keeps its responses."""
    try:
        found = registry.get_provider(provider)
    except registry.ModelError:
        return None
    return found if isinstance(found, port.Askable) else None


def may_reopen(tx: SessionTransaction, attempt: ProviderAttempt) -> bool:
    """Whether the real answer still belongs into the transcript: nothing came after its message.

    A person who chose to try again has let the conversation go on from there.
    """
    message = SessionMessage.objects.filter(pk=attempt.message_id).first()
    if message is None or message.reverted_seq is not None or tx.session.staged_revert:
        return False
    if attempt.decision is not None and attempt.decision.get("action") == "retry":
        return False
    newer = SessionMessage.objects.filter(
        session_id=tx.session.pk,
        seq__gt=message.seq,
        type__in=("user", "synthetic", "assistant"),
        reverted_seq=None,
    )
    return message.state == "unknown" and not newer.exists()
