"""A provider behind HTTP: one wire format at one base URL."""

import hashlib
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

from schema.attempts import AttemptError
from sessions_app.providers import classify, port, sse, transport, wire
from sessions_app.providers.catalog import Access
from sessions_app.providers.classify import Phase

MAX_WHOLE_BODY: Final = sse.MAX_EVENT_BYTES
MAX_BLANK_START: Final = 4096

DEFAULT_LIMITS: Final = transport.Limits()

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
        limits: transport.Limits = DEFAULT_LIMITS,
    ) -> None:
        self.name = name
        self._wire_format = wire_format
        self._access = access
        self._limits = limits

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
                async with aclosing(_Answer(exchange, reader).items()) as items:
                    async for item in items:
                        yield item
        except transport.Broken as broken:
            error = classify.broken(phase=exchange.phase, kind=broken.kind, detail=broken.detail)
            raise self._failure(error, reader) from broken
        except wire.Reported as reported:
            error = classify.reported(payload=reported.payload, phase=exchange.phase)
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
        key = self._access.key
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            detail = "The key holds characters that no HTTP header can carry. Set it again."
            raise self._failure(
                classify.broken(phase=Phase.PREPARED, kind="local", detail=detail), reader=None
            )
        return transport.Call(
            url=f"{self._access.base_url}{self._wire_format.path}",
            headers={**_COMMON_HEADERS, **self._wire_format.headers(key=key, attempt=request.attempt)},
            body=self._body(request),
        )

    def _body(self, request: port.ModelRequest) -> bytes:
        body = self._wire_format.encode(request)
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    def _failure(self, error: AttemptError, reader: wire.Reader | None) -> port.ProviderError:
        secrets = () if self._access.key is None else (self._access.key,)
        usage = None if reader is None else reader.usage
        return port.ProviderError(classify.shown(error, secrets=secrets), usage=usage)


class _Answer:
    """Reads one answer to its end."""

    def __init__(self, exchange: transport.Exchange, reader: wire.Reader) -> None:
        self._exchange = exchange
        self._reader = reader
        self._events = sse.EventReader()

    async def items(self) -> AsyncGenerator[port.Item]:
        """Everything that came, Finished last. What breaks after the terminal marker is forgiven."""
        try:
            async with aclosing(self._received()) as received:
                async for item in received:
                    yield item
        except (transport.Broken, wire.Reported, wire.Undecodable, sse.BadEventStream) as error:
            if not self._reader.is_complete:
                raise _as_break(error) from error
        for item in self._last():
            yield item

    async def _received(self) -> AsyncGenerator[port.Item]:
        start = await self._first_bytes()
        if start.removeprefix(sse.BOM).lstrip()[:1] in (b"{", b"["):
            for item in self._reader.read_whole(await self._rest(start)):
                yield self._noted(item)
            return
        chunk: bytes | None = start
        while chunk is not None:
            for item in self._read(chunk):
                yield item
            if self._reader.is_over:
                return
            if self._reader.is_complete:
                self._exchange.terminal_marker_arrived()
            chunk = await self._exchange.read()
        self._events.close()

    def _last(self) -> list[port.Item]:
        try:
            last = list(self._reader.finish())
        except wire.Incomplete as incomplete:
            raise transport.Broken("cut", str(incomplete)) from incomplete
        self._exchange.terminal_marker_arrived()
        return last

    def _read(self, chunk: bytes) -> Iterable[port.Item]:
        for event in self._events.feed(chunk):
            self._exchange.event_arrived()
            for item in self._reader.read(event):
                yield self._noted(item)
            if self._reader.is_over:
                return

    def _noted(self, item: port.Item) -> port.Item:
        if not isinstance(item, port.ResponseIdentified):
            self._exchange.output_arrived()
        return item

    async def _first_bytes(self) -> bytes:
        """The answer up to the character that tells whether it is a stream or one document."""
        start = b""
        while not _is_telling(start) and (chunk := await self._exchange.read()) is not None:
            start += chunk
        return start

    async def _rest(self, start: bytes) -> bytes:
        body = bytearray(start)
        while (chunk := await self._exchange.read()) is not None:
            body += chunk
            if len(body) > MAX_WHOLE_BODY:
                raise transport.Broken("undecodable", f"The answer is longer than {MAX_WHOLE_BODY} bytes.")
        return bytes(body)


def _is_telling(start: bytes) -> bool:
    if len(start) > MAX_BLANK_START:
        return True
    return not sse.BOM.startswith(start) and bool(start.removeprefix(sse.BOM).strip())


def _as_break(error: Exception) -> Exception:
    if isinstance(error, wire.Undecodable | sse.BadEventStream):
        return transport.Broken("undecodable", str(error))
    return error
