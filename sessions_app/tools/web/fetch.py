"""Gets one document of the web for a stranger who chose its URL."""

import asyncio
import functools
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx2

from sessions_app.tools.declare import bounded
from sessions_app.tools.web.addresses import PUBLIC, Address, Forbidden, Network

MAX_URL_CHARACTERS: Final = 2000
MAX_REDIRECTS: Final = 5
MAX_BYTES: Final = 2 * 1024 * 1024
TOTAL_SECONDS: Final = 25.0
MAX_ADDRESSES_TRIED: Final = 3

_TIMEOUT: Final = httpx2.Timeout(connect=8.0, read=15.0, write=8.0, pool=None)
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {
    "User-Agent": "Mozilla/5.0 (compatible; Holdfast fetch_page)",
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.8, application/xml;q=0.7",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}
_TEXTUAL: Final = frozenset(
    {"application/json", "application/xml", "application/xhtml+xml", "application/javascript"}
)


class NotFetched(Exception):
    """There is no document; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Document:
    url: str
    """Where it was found in the end."""
    status: int
    media_type: str
    charset: str | None
    content: bytes
    is_cut: bool


async def fetch(url: str, *, network: Network = PUBLIC) -> Document:
    """The document at the URL, redirects followed.

    Every address is checked before it is connected to, and the connection is made to the address that was
    checked, for the first URL and for each redirect. Nothing of this machine is sent along: no cookie, no
    proxy, no credential. Raises NotFetched.
    """
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            return await _follow(url, network)
    except TimeoutError:
        raise NotFetched(f"The page took longer than {TOTAL_SECONDS:g} seconds.") from None


async def _follow(url: str, network: Network) -> Document:
    target = parse(url)
    for _ in range(MAX_REDIRECTS + 1):
        async with _answer(target, network) as response:
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or not location:
                return await _document(target, response)
        target = parse(_joined(target, location))
    raise NotFetched(f"The page was redirected more than {MAX_REDIRECTS} times.")


def parse(url: str) -> httpx2.URL:
    """The URL as it will be used: no other parser reads it again. Raises NotFetched."""
    if len(url) > MAX_URL_CHARACTERS or not url.isprintable() or " " in url or "\\" in url:
        raise NotFetched(
            "This is not a URL that can be fetched: it is too long or holds blanks or backslashes."
        )
    try:
        parsed = httpx2.URL(url)
        host = parsed.raw_host
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise NotFetched("This is not a URL that can be fetched: it is malformed.") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise NotFetched("Only http and https URLs can be fetched.")
    if parsed.userinfo:
        raise NotFetched("A URL with a user or password in it cannot be fetched.")
    return parsed.copy_with(fragment=None)


def _joined(base: httpx2.URL, location: str) -> str:
    try:
        return str(base.join(location))
    except (httpx2.InvalidURL, ValueError):
        raise NotFetched("The page redirects to a malformed URL.") from None


@asynccontextmanager
async def _answer(target: httpx2.URL, network: Network) -> AsyncIterator[httpx2.Response]:
    """The head of the answer from the first of the host's addresses that can be reached."""
    addresses = await _addresses(target, network)
    async with httpx2.AsyncHTTPTransport(
        verify=_tls(), trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0)
    ) as transport:
        response = await _first_reached(transport, target, addresses[:MAX_ADDRESSES_TRIED])
        try:
            yield response
        except httpx2.TransportError as error:
            raise NotFetched(f"The page broke off ({type(error).__name__}).") from None
        finally:
            await response.aclose()


async def _addresses(target: httpx2.URL, network: Network) -> list[Address]:
    port = target.port or {"http": 80, "https": 443}[target.scheme]
    try:
        return await network.checked(target.raw_host.decode("ascii"), port)
    except Forbidden as forbidden:
        raise NotFetched(f"This URL may not be fetched: {forbidden}.") from None
    except (OSError, ValueError):
        raise NotFetched(f"The host {bounded(target.host, 100)} was not found.") from None


async def _first_reached(
    transport: httpx2.AsyncHTTPTransport, target: httpx2.URL, addresses: list[Address]
) -> httpx2.Response:
    error: httpx2.TransportError | None = None
    for address in addresses:
        try:
            return await transport.handle_async_request(_request(target, address))
        except httpx2.ConnectError as refused:
            error = refused
        except httpx2.TransportError as broken:
            error = broken
            break
    raise NotFetched(f"The host {bounded(target.host, 100)} could not be reached ({type(error).__name__}).")


def _request(target: httpx2.URL, address: Address) -> httpx2.Request:
    """To the checked address, in the name of the host: a second look at the name could give another address."""
    host = target.netloc.decode("ascii")
    return httpx2.Request(
        "GET",
        target.copy_with(host=str(address)),
        headers={"Host": host, **_HEADERS},
        extensions={"sni_hostname": target.raw_host.decode("ascii"), "timeout": _TIMEOUT.as_dict()},
    )


async def _document(target: httpx2.URL, response: httpx2.Response) -> Document:
    media_type, charset = _content_type(response.headers.get("content-type", ""))
    if not _is_text(media_type):
        raise NotFetched(f"The URL leads to {bounded(media_type, 80)}, which is no text.")
    content = await _content(response)
    return Document(
        url=str(target),
        status=response.status_code,
        media_type=media_type,
        charset=charset,
        content=content[:MAX_BYTES],
        is_cut=len(content) > MAX_BYTES,
    )


def _content_type(header: str) -> tuple[str, str | None]:
    media_type, *parameters = (part.strip() for part in header.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return media_type.lower() or "text/html", value.strip(" \"'").lower() or None
    return media_type.lower() or "text/html", None


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in _TEXTUAL or media_type.endswith(("+json", "+xml"))


async def _content(response: httpx2.Response) -> bytes:
    """The body as far as it is read, one byte more than we keep; what is packed never grows beyond that."""
    content = bytearray()
    unpack = _unpacker(response.headers.get("content-encoding", "").strip().lower())
    async for chunk in response.aiter_raw():
        try:
            content += unpack(chunk, MAX_BYTES + 1 - len(content))
        except zlib.error:
            raise NotFetched("The page could not be unpacked.") from None
        if len(content) > MAX_BYTES:
            break
    return bytes(content)


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    if encoding in ("", "identity"):
        return lambda chunk, limit: chunk[:limit]
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress
    raise NotFetched(f"The page is packed in a way that was not asked for ({bounded(encoding, 40)}).")


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
