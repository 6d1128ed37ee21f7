"""One physical request over HTTP, with its phases told as they happen.

Every exchange opens its own connection and closes it: a kept connection that the server just closed would
fail after the request may have left, which proves nothing. Nothing is retried, redirected or proxied.
"""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self, cast

import httpx2

from sessions_app.providers import port
from sessions_app.providers.classify import Break, Phase

MAX_HEADERS: Final = 60
MAX_HEADER_VALUE: Final = 500
MAX_ERROR_BODY: Final = 64 * 1024

_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-generation-id", "apim-request-id")
_UNTOLD_HEADERS: Final = frozenset({"set-cookie", "www-authenticate", "proxy-authenticate"})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long to wait, in seconds. Reaching one ends the attempt; what that proves is its phase."""

    connect: float = 15.0
    """For the connection to stand, TLS included."""
    first_output: float = 600.0
    """From the request to the first output; models may reason for minutes without a sign."""
    silence: float = 180.0
    """Without a single byte after the first output."""
    keep_alive: float = 600.0
    """Without output while the server only says that it is alive."""
    after_end: float = 10.0
    """For what may still follow a terminal marker (usage), and for the body of an error."""
    attempt: float = 7200.0
    """For all of it, from the request on."""


DEFAULT_LIMITS: Final = Limits()


@dataclass(frozen=True, kw_only=True)
class Call:
    """The request to send."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"


class Broken(Exception):
    """The exchange ended without the provider saying so."""

    def __init__(self, kind: Break, detail: str) -> None:
        self.kind: Break = kind
        self.detail = detail
        super().__init__(detail)


@dataclass(frozen=True, kw_only=True)
class Head:
    """What arrived before the body. Header names are lower case."""

    status: int
    headers: Mapping[str, str]

    @property
    def request_id(self) -> str | None:
        return next((self.headers[name] for name in _REQUEST_IDS if name in self.headers), None)


class _Stream(Protocol):
    async def aclose(self) -> None: ...


class Exchange:
    """One request and its answer; enter it to send, leave it to close the connection.

    Entering awaits ``phases.dispatching()`` once the connection stands and before the first byte leaves. What
    that raises comes out unchanged, and nothing is sent.

    Raises Broken on entry and from ``read``; ``phase`` then tells how far it came.
    """

    def __init__(self, call: Call, *, phases: port.Phases, limits: Limits) -> None:
        self.phase = Phase.PREPARED
        self._call = call
        self._phases = phases
        self._limits = limits
        self._refusal: BaseException | None = None
        self._stream: _Stream | None = None
        self._end_by = 0.0
        self._output_by = 0.0
        self._has_output = False

    async def __aenter__(self) -> Self:
        self._transport = httpx2.AsyncHTTPTransport(
            verify=_tls(),
            trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        )
        try:
            self._response = await self._send()
        except BaseException:
            await self._close_unused()
            raise
        self._reached(Phase.HEADERS)
        self._chunks = self._body()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._response.aclose()
        finally:
            await self._transport.aclose()

    @property
    def head(self) -> Head:
        headers: dict[str, str] = {}
        for name, value in list(self._response.headers.items())[:MAX_HEADERS]:
            if name not in _UNTOLD_HEADERS:
                headers[name] = value[:MAX_HEADER_VALUE]
        return Head(status=self._response.status_code, headers=headers)

    async def read(self) -> bytes | None:
        """The next bytes of the answer; None when it ended cleanly."""
        try:
            async with asyncio.timeout_at(self._read_by()):
                return await anext(self._chunks, None)
        except TimeoutError as error:
            raise Broken("timeout", self._what_was_late()) from error
        except Exception as error:
            raise self._broken(error) from error

    async def read_whole(self, *, limit: int) -> bytes:
        """The body to its end. Raises Broken, also for one that is longer than the limit in bytes."""
        body = bytearray()
        while (chunk := await self.read()) is not None:
            body += chunk
            if len(body) > limit:
                raise Broken("undecodable", f"The answer is longer than {limit} bytes.")
        return bytes(body)

    async def read_error(self) -> bytes:
        """The body of an answer that is no success, as far as it came."""
        self._end_by = min(self._end_by, _now() + self._limits.after_end)
        body = b""
        try:
            while len(body) < MAX_ERROR_BODY and (chunk := await self.read()) is not None:
                body += chunk
        except Broken:
            pass
        return body[:MAX_ERROR_BODY]

    def event_arrived(self) -> None:
        self._reached(Phase.FIRST_EVENT)

    def output_arrived(self) -> None:
        """The answer moved on; keep-alives alone do not."""
        self._has_output = True
        self._output_by = _now() + self._limits.keep_alive
        self._reached(Phase.FIRST_OUTPUT)

    def terminal_marker_arrived(self) -> None:
        """The attempt is completed whatever happens now; wait a little for what may follow."""
        if self.phase < Phase.TERMINAL:
            self._end_by = min(self._end_by, _now() + self._limits.after_end)
            self._reached(Phase.TERMINAL)

    async def _send(self) -> httpx2.Response:
        try:
            request = httpx2.Request(
                self._call.method,
                self._call.url,
                headers=self._call.headers,
                content=self._call.body,
                extensions={"trace": self._trace},
            )
            async with asyncio.timeout(self._limits.connect) as self._timer:
                return await self._transport.handle_async_request(request)
        except Exception as error:
            if error is self._refusal:
                raise
            if isinstance(error, TimeoutError):
                raise Broken("timeout", self._what_was_late()) from error
            raise self._broken(error) from error

    async def _close_unused(self) -> None:
        """The transport forgets a connection whose TLS handshake was cancelled, and would leave it open."""
        try:
            if self._stream is not None:
                await self._stream.aclose()
        finally:
            await self._transport.aclose()

    async def _trace(self, event: str, info: Mapping[str, object]) -> None:
        """Called by httpcore2 before and after each thing it does; an exception here stops the request."""
        if event == "connection.connect_tcp.started":
            self._reached(Phase.CONNECTING)
        elif event == "connection.connect_tcp.complete":
            self._stream = cast("_Stream", info["return_value"])
        elif event == "http11.send_request_headers.started":
            self._reached(Phase.CONNECTED)
            await self._dispatch()
        elif event == "http11.send_request_body.complete":
            self._reached(Phase.WRITTEN)

    async def _dispatch(self) -> None:
        """Make the dispatch durable; its time counts against no limit of ours."""
        if self._timer.expired():
            # The timer has cancelled this task by now: let that arrive before anything is told.
            await asyncio.sleep(0)
        self._timer.reschedule(None)
        try:
            await self._phases.dispatching()
        except BaseException as refusal:
            self._refusal = refusal
            raise
        self._reached(Phase.DISPATCHED)
        self._end_by = _now() + self._limits.attempt
        self._output_by = _now() + self._limits.first_output
        self._timer.reschedule(self._read_by())

    def _read_by(self) -> float:
        if self.phase >= Phase.TERMINAL or not self._has_output:
            return min(self._end_by, self._output_by)
        return min(self._end_by, self._output_by, _now() + self._limits.silence)

    def _broken(self, error: Exception) -> Broken:
        """Whatever a library raises is a break: what it proves follows from the phase, not from its type."""
        match error:
            case httpx2.ConnectError() | httpx2.ProxyError():
                return _because("unreachable", "The server could not be reached", error)
            case httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
                return _because("local", "The request could not be made", error)
            case httpx2.RemoteProtocolError() if not _tells_of_a_cut(str(error)):
                return _because("protocol", "The server does not speak HTTP", error)
            case httpx2.DecodingError():
                return _because("undecodable", "The answer could not be decompressed", error)
            case httpx2.TimeoutException():
                return _because("timeout", "The server took too long", error)
            case _ if self.phase < Phase.DISPATCHED:
                return _because("local", "The connection could not be made", error)
            case _:
                return _because("disconnected", "The connection broke off", error)

    def _what_was_late(self) -> str:
        if self.phase < Phase.DISPATCHED:
            return f"The server could not be reached within {self._limits.connect:g} seconds."
        if self._end_by <= _now():
            return f"The answer took longer than {self._limits.attempt:g} seconds."
        if self._has_output:
            return "The answer stopped coming."
        return f"The first output did not come within {self._limits.first_output:g} seconds."

    def _reached(self, phase: Phase) -> None:
        if phase > self.phase:
            self.phase = phase

    def _body(self) -> AsyncIterator[bytes]:
        if "content-encoding" in self._response.headers:
            return self._response.aiter_bytes()
        return self._response.aiter_raw()


def _because(kind: Break, what: str, error: Exception) -> Broken:
    return Broken(kind, f"{what}: {error}" if str(error) else f"{what}.")


def _tells_of_a_cut(detail: str) -> bool:
    return detail.startswith(("Server disconnected", "peer closed connection"))


@functools.cache
def _tls() -> ssl.SSLContext:
    """Read the certificates of the machine once; doing it per request costs tens of milliseconds."""
    return httpx2.create_ssl_context(trust_env=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
