"""A provider behind HTTP: one wire format at one base URL."""

import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from schema.attempts import AttemptError, Usage
from schema.ids import AttemptId
from sessions_app.providers import answer, classify, port, pricing, transport, wire
from sessions_app.providers.catalog import Access
from sessions_app.providers.classify import Phase

_COMMON_HEADERS: Final = {
    "accept": "text/event-stream",
    "accept-encoding": "identity",  # a compressing proxy would hold fragments back
    "content-type": "application/json",
    "user-agent": "holdfast",
}


class RemoteProvider:
    """Asks a model over HTTP, once per attempt."""

    def __init__(
        self,
        *,
        name: str,
        wire_format: wire.WireFormat,
        access: Access,
        limits: transport.Limits = transport.DEFAULT_LIMITS,
        prices: pricing.Prices | None = None,
    ) -> None:
        self.name = name
        self._wire_format = wire_format
        self._access = access
        self._limits = limits
        self._prices = prices

    def digest(self, request: port.ModelRequest) -> str:
        return hashlib.sha256(self._body(request)).hexdigest()

    async def stream(self, request: port.ModelRequest, phases: port.Phases) -> AsyncGenerator[port.Item]:
        """Send one request and yield what comes back.

        Raises ProviderError, whose class is what the wire proves; what ``phases`` raises comes out unchanged.
        """
        exchange = transport.Exchange(self._call(request), phases=phases, limits=self._limits)
        reader = self._wire_format.reader()
        try:
            async with exchange:
                await self._start(exchange, phases)
                async with aclosing(answer.items(exchange, reader)) as items:
                    async for item in items:
                        yield self._priced_item(item)
        except transport.Broken as broken:
            error = classify.broken(phase=exchange.phase, kind=broken.kind, detail=broken.detail)
            raise self._failure(error, reader) from broken
        except wire.Reported as reported:
            error = classify.reported(
                payload=reported.payload,
                phase=exchange.phase,
                has_hosted_tools=bool(request.hosted_tools),
            )
            raise self._failure(error, reader) from reported
        except wire.Unusable as unusable:
            error = classify.unusable(reason=unusable.reason, detail=str(unusable))
            raise self._failure(error, reader) from unusable

    async def _start(self, exchange: transport.Exchange, phases: port.Phases) -> None:
        head = exchange.head
        await phases.response_started(status=head.status, request_id=head.request_id, headers=head.headers)
        if 200 <= head.status < 300:
            return
        error = classify.answered(
            status=head.status,
            headers=head.headers,
            body=await exchange.read_error(),
            is_own_server=self._access.is_own,
            now=datetime.now(tz=UTC),
        )
        raise self._failure(error, None)

    def _call(self, request: port.ModelRequest) -> transport.Call:
        return transport.Call(
            url=f"{self._access.base_url}{self._wire_format.path}",
            headers=self._headers(request.attempt),
            body=self._body(request),
        )

    def _headers(self, attempt: AttemptId) -> dict[str, str]:
        key = self._access.key
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            detail = "The key holds characters that no HTTP header can carry. Set it again."
            raise self._failure(
                classify.broken(phase=Phase.PREPARED, kind="local", detail=detail), reader=None
            )
        return {**_COMMON_HEADERS, **self._wire_format.headers(key=key, attempt=attempt)}

    def _body(self, request: port.ModelRequest) -> bytes:
        body = self._wire_format.encode(request)
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    def _failure(self, error: AttemptError, reader: wire.Reader | None) -> port.ProviderError:
        secrets = () if self._access.key is None else (self._access.key,)
        counted = None if reader is None else reader.usage
        usage = None if counted is None else self._priced(counted)
        return port.ProviderError(classify.shown(error, secrets=secrets), usage=usage)

    def _priced_item(self, item: port.Item) -> port.Item:
        match item:
            case port.UsageNoted(usage=usage) | port.Finished(usage=Usage() as usage):
                return replace(item, usage=self._priced(usage))
        return item

    def _priced(self, usage: Usage) -> Usage:
        counts_cache_as_input = self._wire_format.counts_cache_as_input
        return pricing.priced(usage, self._prices, counts_cache_as_input=counts_cache_as_input)
