"""One answer read to its end: bytes in, items out, and what it means when it breaks off."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final, Protocol

from sessions_app.providers import port, sse, transport, wire

MAX_WHOLE_BODY: Final = sse.MAX_EVENT_BYTES
MAX_BLANK_START: Final = 4096
MAX_OUTPUT: Final = 16 * 1024 * 1024
"""Characters of one answer: far more than any model writes, and what a process can hold."""
MAX_CALLS: Final = 1000


class Source(Protocol):
    """Where the bytes come from, told how far the answer came: ``transport.Exchange``."""

    async def read(self) -> bytes | None: ...

    def event_arrived(self) -> None: ...

    def output_arrived(self) -> None: ...

    def terminal_marker_arrived(self) -> None: ...


def items(source: Source, reader: wire.Reader) -> AsyncGenerator[port.Item]:
    """Everything that came, Finished last.

    What breaks after the terminal marker is forgiven: the answer is complete. Before it, raises
    transport.Broken, wire.Reported or wire.Unusable.
    """
    return _Answer(source, reader).items()


class _Answer:
    """Reads one answer to its end."""

    def __init__(self, source: Source, reader: wire.Reader) -> None:
        self._source = source
        self._reader = reader
        self._events = sse.EventReader()
        self._usage = reader.usage
        self._output = 0
        self._calls = 0

    async def items(self) -> AsyncGenerator[port.Item]:
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
                self._source.terminal_marker_arrived()
            chunk = await self._source.read()
        self._events.close()

    def _last(self) -> list[port.Item]:
        try:
            last = list(self._reader.finish())
        except wire.Incomplete as incomplete:
            raise transport.Broken("cut", str(incomplete)) from incomplete
        self._source.terminal_marker_arrived()
        return last

    def _read(self, chunk: bytes) -> Iterable[port.Item]:
        for event in self._events.feed(chunk):
            self._source.event_arrived()
            for item in self._reader.read(event):
                yield self._noted(item)
            yield from self._counted()
            if self._reader.is_over:
                return

    def _counted(self) -> Iterable[port.Item]:
        usage = self._reader.usage
        if usage is not None and usage != self._usage:
            self._usage = usage
            yield port.UsageNoted(usage)

    def _noted(self, item: port.Item) -> port.Item:
        if not isinstance(item, port.ResponseIdentified):
            self._source.output_arrived()
            self._measure(item)
        return item

    def _measure(self, item: port.Item) -> None:
        match item:
            case port.TextDelta(text=words) | port.ReasoningDelta(text=words):
                self._output += len(words)
            case port.CallDelta(arguments=words):
                self._output += len(words)
            case port.CallStarted():
                self._calls += 1
        if self._output > MAX_OUTPUT or self._calls > MAX_CALLS:
            raise transport.Broken("undecodable", "The answer does not end: it is longer than can be kept.")

    async def _first_bytes(self) -> bytes:
        """The answer up to the character that tells whether it is a stream or one document."""
        start = b""
        while not _is_telling(start) and (chunk := await self._source.read()) is not None:
            start += chunk
        return start

    async def _rest(self, start: bytes) -> bytes:
        body = bytearray(start)
        while (chunk := await self._source.read()) is not None:
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
