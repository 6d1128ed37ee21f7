"""One tiny request that shows whether a model answers: an attempt with its facts, in no session.

A session's log is for conversations, and its facts need an owner that recovery can take over from. A test has
nothing to recover: it is asked once, while somebody waits, and never again by itself.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from schema import text
from schema.turns import UserTurn
from sessions_app import identity
from sessions_app.models import ModelTest
from sessions_app.providers import classify, port, registry
from sessions_app.providers.classify import Phase

PROMPT: Final = "Reply with the single word: OK"
MAX_OUTPUT_TOKENS: Final = 512
"""Room for a model that reasons before it says a word."""
LONGEST_SECONDS: Final = 60.0
LONGEST_TEXT: Final = 2000

State = Literal["completed", "not_sent", "rejected", "failed", "ambiguous", "partial", "running", "unknown"]


def run(model: str, *, by: str) -> ModelTest:
    """Ask ``provider:model`` once, and keep what came of it. Takes a minute at most.

    The request is durable before its first byte leaves. Raises registry.ModelError, having sent nothing.
    """
    provider, name = registry.resolve(model)
    limit = registry.traits(model).max_output_tokens
    request = port.ModelRequest(
        attempt=identity.new_attempt_id(),
        model=name,
        turns=(UserTurn(text=PROMPT),),
        max_output_tokens=min(MAX_OUTPUT_TOKENS, limit or MAX_OUTPUT_TOKENS),
    )
    row = ModelTest.objects.create(
        pk=request.attempt,
        provider=provider.name,
        model=name,
        by=by,
        request_digest=provider.digest(request),
        prepared_at=timezone.now(),
    )
    async_to_sync(_Asking(row).ask)(provider, request)
    return row


def state_of(row: ModelTest, *, now: datetime) -> State:
    """Completed or the class of its error. Without an end it runs, or was cut off with its process."""
    if row.ended_at is not None:
        state: State = row.outcome  # type: ignore[assignment]
        return state
    if now - row.prepared_at < timedelta(seconds=2 * LONGEST_SECONDS):
        return "running"
    return "not_sent" if row.dispatched_at is None else "unknown"


def may_be_billed(state: State) -> bool:
    return state not in ("not_sent", "rejected")


class _Asking:
    """The request while it is out; writes each fact when it happens."""

    def __init__(self, row: ModelTest) -> None:
        self._row = row
        self._text: list[str] = []
        self._reasoning: list[str] = []

    async def ask(self, provider: port.Provider, request: port.ModelRequest) -> None:
        try:
            async with (
                asyncio.timeout(LONGEST_SECONDS),
                aclosing(provider.stream(request, self)) as items,  # type: ignore[type-var]
            ):
                async for item in items:
                    await self._take(item)
        except port.ProviderError as error:
            await self._end(error)
        except TimeoutError:
            detail = f"No whole answer came within {LONGEST_SECONDS:g} seconds."
            await self._end(
                port.ProviderError(classify.broken(phase=self._phase, kind="timeout", detail=detail))
            )

    async def dispatching(self) -> None:
        await self._save(dispatched_at=timezone.now())

    async def response_started(
        self, *, status: int, request_id: str | None, headers: Mapping[str, str]
    ) -> None:
        await self._save(
            headers_at=timezone.now(), status=status, provider_request_id=text.clean(request_id or "")[:200]
        )

    async def _take(self, item: port.Item) -> None:
        if self._row.first_output_at is None and not isinstance(
            item, port.ResponseIdentified | port.UsageNoted | port.Finished
        ):
            await self._save(first_output_at=timezone.now())
        match item:
            case port.TextDelta(text=words):
                self._text.append(words)
            case port.ReasoningDelta(text=words):
                self._reasoning.append(words)
            case port.UsageNoted(usage=usage):
                self._row.usage = usage.to_json()
            case port.Finished(finish=finish, usage=usage):
                counted = self._row.usage if usage is None else usage.to_json()
                await self._save(outcome="completed", finish=finish, usage=counted, **self._ending())

    async def _end(self, error: port.ProviderError) -> None:
        usage = self._row.usage if error.usage is None else error.usage.to_json()
        await self._save(
            outcome=error.error.error_class, error=error.error.to_json(), usage=usage, **self._ending()
        )

    def _ending(self) -> dict[str, Any]:
        return {
            "ended_at": timezone.now(),
            "text": "".join(self._text)[:LONGEST_TEXT],
            "reasoning": "".join(self._reasoning)[:LONGEST_TEXT],
        }

    @property
    def _phase(self) -> Phase:
        if self._row.dispatched_at is None:
            return Phase.CONNECTING
        return Phase.WRITTEN if self._row.headers_at is None else Phase.FIRST_EVENT

    async def _save(self, **columns: Any) -> None:
        for name, value in columns.items():
            setattr(self._row, name, value)
        await sync_to_async(self._row.save)(update_fields=list(columns))
