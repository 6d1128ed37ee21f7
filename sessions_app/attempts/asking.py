"""Whether a provider can be asked what became of an attempt, and what its answer may change."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Literal

from schema.attempts import AttemptError, Usage
from schema.events import AttemptSettled
from sessions_app.log import SessionTransaction
from sessions_app.models import ProviderAttempt, SessionMessage
from sessions_app.providers import port, registry

logger = logging.getLogger(__name__)

LONGEST_LOOK_SECONDS: Final = 10.0


def find_askable(attempt: ProviderAttempt) -> port.Askable | None:
    """The provider that keeps the response of this attempt, if it can be asked for it."""
    if not attempt.provider_response_id:
        return None
    return find_keeper(attempt.provider, attempt.model)


def askable(attempts: Iterable[ProviderAttempt]) -> frozenset[str]:
    """The ids of those whose outcome is unknown and whose provider may know it; each provider looked up once."""
    unknown = [each for each in attempts if each.state == "unknown" and each.provider_response_id]
    asked = {(each.provider, each.model) for each in unknown}
    keepers = {names for names in asked if find_keeper(*names) is not None}
    return frozenset(each.pk for each in unknown if (each.provider, each.model) in keepers)


def find_keeper(provider: str, model: str) -> port.Askable | None:
    """The provider of this name, for this model, if it keeps its responses."""
    try:
        found = registry.get_provider(provider, model)
    except registry.ModelError:
        return None
    return found if isinstance(found, port.Askable) else None


def may_reopen(tx: SessionTransaction, attempt: ProviderAttempt) -> bool:
    """Whether the real answer still belongs into the transcript: nothing came after its message.

    Whoever chose to try again, or the policy to continue, has let the conversation go on from there.
    """
    message = SessionMessage.objects.filter(pk=attempt.message_id).first()
    if message is None or message.reverted_seq is not None or tx.session.staged_revert:
        return False
    decision = attempt.decision or {}
    if decision.get("action") == "retry" or decision.get("policy"):
        return False
    newer = SessionMessage.objects.filter(
        session_id=tx.session.pk,
        seq__gt=message.seq,
        type__in=("user", "synthetic", "assistant"),
        reverted_seq=None,
    )
    return message.state == "unknown" and not newer.exists()


def ask(attempt: ProviderAttempt, keeper: port.Askable) -> AttemptSettled | None:
    """Ask once what became of an attempt; its end if the provider tells one, which is not stored yet.

    Waits some seconds at most, and never for a response that still runs.
    """
    return asyncio.run(_ask(attempt, keeper))


async def _ask(attempt: ProviderAttempt, keeper: port.Askable) -> AttemptSettled | None:
    try:
        async with asyncio.timeout(LONGEST_LOOK_SECONDS):
            async for item in keeper.ask(attempt.provider_response_id, follow=False):
                if isinstance(item, port.Finished):
                    return _settled(attempt, "completed", finish=item.finish, usage=item.usage)
    except port.ProviderError as error:
        return _settled(attempt, "failed", error=error.error, usage=error.usage)
    except (port.Forgotten, port.CannotTell, TimeoutError) as unanswered:
        logger.info("attempt.asked", extra={"attempt": attempt.pk, "answer": type(unanswered).__name__})
    return None


def _settled(
    attempt: ProviderAttempt,
    outcome: Literal["completed", "failed"],
    *,
    usage: Usage | None,
    finish: str | None = None,
    error: AttemptError | None = None,
) -> AttemptSettled:
    return AttemptSettled(
        attempt=attempt.pk,
        message=attempt.message_id,
        outcome=outcome,
        finish=finish,
        error=error,
        usage=usage,
        may_be_billed=True,
    )
