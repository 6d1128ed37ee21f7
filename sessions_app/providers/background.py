"""Responses in background mode: the provider goes on without us and can be asked for them by their id."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from schema.attempts import AttemptError
from schema.ids import AttemptId
from sessions_app.providers import answer, classify, openai_responses, port, pricing, sse, transport, wire
from sessions_app.providers.catalog import Access
from sessions_app.providers.remote import RemoteProvider

logger = logging.getLogger(__name__)

DELAYS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between looks, in seconds, while nothing moves; after as many failures in a row nobody can tell."""

_RUNNING: Final = frozenset({"queued", "in_progress"})
_HINT: Final = " Set OPENAI_RESPONSES_BACKGROUND=0 for a server without background mode."


class BackgroundProvider(RemoteProvider):
    """The Responses API where responses are kept. ``ask`` only reads."""

    def __init__(
        self,
        *,
        name: str,
        access: Access,
        limits: transport.Limits = transport.DEFAULT_LIMITS,
        prices: pricing.Prices | None = None,
    ) -> None:
        super().__init__(
            name=name,
            wire_format=openai_responses.Responses(is_background=True),
            access=access,
            limits=limits,
            prices=prices,
        )

    async def ask(self, response_id: str, *, follow: bool) -> AsyncGenerator[port.Item]:
        deadline = asyncio.get_running_loop().time() + self._limits.attempt
        asking = _Asking(self, response_id, deadline=deadline)
        try:
            async with aclosing(asking.items(follow=follow)) as items:
                async for item in items:
                    yield self._priced_item(item)
        except wire.Reported as reported:
            failed = classify.reported(payload=reported.payload, phase=classify.Phase.FIRST_OUTPUT)
            raise self._failure(failed, asking.reader) from reported
        except wire.Unusable as unusable:
            failed = classify.unusable(reason=unusable.reason, detail=str(unusable))
            raise self._failure(failed, asking.reader) from unusable

    async def cancel(self, response_id: str) -> None:
        with contextlib.suppress(transport.Broken, port.ProviderError):
            async with self.exchange(f"/responses/{_quoted(response_id)}/cancel", method="POST") as exchange:
                logger.info("provider.response.cancelled", extra={"status": exchange.head.status})

    def exchange(self, path: str, *, method: str = "GET", is_stream: bool = False) -> transport.Exchange:
        """An exchange about a response that exists; what happens on its wire is nobody's attempt."""
        short = replace(self._limits, first_output=min(30.0, self._limits.first_output))
        headers = self._headers(AttemptId(""))
        headers = {name: value for name, value in headers.items() if value and name != "content-type"}
        call = transport.Call(
            url=f"{self._access.base_url}{path}",
            headers=headers | {"accept": "text/event-stream" if is_stream else "application/json"},
            body=b"",
            method=method,
        )
        return transport.Exchange(call, phases=_Untold(), limits=self._limits if is_stream else short)

    def _failure(self, error: AttemptError, reader: wire.Reader | None) -> port.ProviderError:
        if error.error_class == "rejected" and error.status == 400 and "background" in error.message:
            error = error.model_copy(update={"reason": "configuration", "message": error.message + _HINT})
        return super()._failure(error, reader)


class _Untold:
    """Phases of a request that starts nothing."""

    async def dispatching(self) -> None: ...

    async def response_started(
        self, *, status: int, request_id: str | None, headers: Mapping[str, str]
    ) -> None: ...


class _Asking:
    """One inquiry about one response: look, follow while it runs, look again."""

    def __init__(
        self,
        provider: BackgroundProvider,
        response_id: str,
        *,
        deadline: float,
    ) -> None:
        self.reader = openai_responses.ResponseReader()
        self._provider = provider
        self._path = f"/responses/{_quoted(response_id)}"
        self._deadline = deadline
        self._waited = 0

    async def items(self, *, follow: bool) -> AsyncGenerator[port.Item]:
        while not self.reader.is_complete:
            async with aclosing(self._more(follow=follow)) as items:
                async for item in items:
                    yield item
        for item in self.reader.finish():
            yield item

    async def _more(self, *, follow: bool) -> AsyncGenerator[port.Item]:
        """What one look, and following from there, tells beyond what is known."""
        response = await self._look()
        if response.get("status") not in _RUNNING:
            for item in self.reader.read_whole(json.dumps(response).encode()):
                yield item
            return
        if not follow:
            raise port.CannotTell("The response still runs.")
        before = self.reader.sequence
        async with aclosing(self._follow()) as items:
            async for item in items:
                yield item
        if not self.reader.is_complete:
            await self._pause(has_moved=self.reader.sequence != before)

    async def _pause(self, *, has_moved: bool) -> None:
        """Wait longer each time while nothing moves, and not for ever."""
        if asyncio.get_running_loop().time() > self._deadline:
            raise port.CannotTell("The response still ran when the time to wait for it was over.")
        self._waited = 0 if has_moved else self._waited + 1
        await asyncio.sleep(DELAYS[min(self._waited, len(DELAYS) - 1)])

    async def _look(self) -> dict[str, JsonValue]:
        """The response as it is now. Tries again while the provider cannot be reached."""
        for delay in (*DELAYS, None):
            try:
                return await self._looked()
            except transport.Broken as broken:
                detail = broken.detail
            if delay is not None:
                await asyncio.sleep(delay)
        raise port.CannotTell(detail)

    async def _looked(self) -> dict[str, JsonValue]:
        async with self._provider.exchange(self._path) as exchange:
            status = exchange.head.status
            if status in (404, 410):
                raise port.Forgotten("The provider does not know the response any more.")
            if status == 429 or status >= 500:
                raise transport.Broken("disconnected", f"The provider answered {status}.")
            if status != 200:
                raise port.CannotTell(f"The provider answered {status} when it was asked for the response.")
            body = await exchange.read_whole(limit=answer.MAX_WHOLE_BODY)
        try:
            return wire.document(body)
        except wire.Undecodable as undecodable:
            raise transport.Broken("undecodable", str(undecodable)) from undecodable

    async def _follow(self) -> AsyncGenerator[port.Item]:
        """The stream from behind what was read so far, as far as it comes; it may be refused, or break."""
        after = self.reader.sequence or 0
        path = f"{self._path}?stream=true&starting_after={after}"
        try:
            async with self._provider.exchange(path, is_stream=True) as exchange:
                if exchange.head.status != 200:
                    return
                async with aclosing(self._read(exchange, after)) as items:
                    async for item in items:
                        yield item
        except (transport.Broken, wire.Undecodable, sse.BadEventStream) as broken:
            logger.info("provider.follow.broken", extra={"why": type(broken).__name__})

    async def _read(self, exchange: transport.Exchange, after: int) -> AsyncGenerator[port.Item]:
        events = sse.EventReader()
        is_first = True
        while (chunk := await exchange.read()) is not None:
            for event in events.feed(chunk):
                exchange.output_arrived()
                if is_first and _is_beyond(event, after):
                    # Something in between is missing: only the whole response tells it, once it has ended.
                    await self._drain(exchange)
                    return
                is_first = False
                for item in self.reader.read(event):
                    yield item
                if self.reader.is_over:
                    return

    async def _drain(self, exchange: transport.Exchange) -> None:
        while await exchange.read() is not None:
            exchange.output_arrived()


def _is_beyond(event: sse.Event, after: int) -> bool:
    """Whether the stream begins later than it was asked to."""
    try:
        number = wire.count(wire.decoded(event.data).get("sequence_number"))
    except wire.Undecodable:
        return False
    return number is not None and number > after + 1


def _quoted(response_id: str) -> str:
    return quote(response_id, safe="")
