"""Which pages may open a socket: those of this site, and those of the trusted origins.

Browsers send cookies with a socket to any site, so the Origin is what tells our page from another one. A
program sends none; it is let in with a ticket only, which no foreign page can have.
"""

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def is_allowed(headers: Iterable[tuple[bytes, bytes]], *, has_ticket: bool) -> bool:
    """Whether a socket with these request headers may be opened."""
    found: dict[bytes, list[str]] = {b"origin": [], b"host": []}
    for name, value in headers:
        if name in found:
            found[name].append(value.decode("latin1").lower())
    if not found[b"origin"]:
        return has_ticket
    if len(found[b"origin"]) != 1:
        return False
    origin = _split(found[b"origin"][0])
    return origin is not None and (_is_here(origin, found[b"host"]) or _is_trusted(origin))


def _split(text: str) -> SplitResult | None:
    try:
        origin = urlsplit(text)
    except ValueError:
        return None
    return origin if origin.scheme in _DEFAULT_PORTS and origin.netloc else None


def _is_here(origin: SplitResult, hosts: list[str]) -> bool:
    """Whether the page came from the host that was asked for the socket, and that host is ours."""
    if len(hosts) != 1:
        return False
    port = _DEFAULT_PORTS[origin.scheme]
    if origin.netloc.removesuffix(port) != hosts[0].removesuffix(port):
        return False
    domain, _ = split_domain_port(hosts[0])
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_trusted(origin: SplitResult) -> bool:
    return any(
        trusted.scheme == origin.scheme and _matches(origin.netloc, trusted.netloc)
        for trusted in map(urlsplit, settings.CSRF_TRUSTED_ORIGINS)
    )


def _matches(netloc: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return is_same_domain(netloc, pattern[1:].lower())
    return netloc == pattern.lower()
