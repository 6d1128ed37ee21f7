"""What connecting to a server needs, read from its row, the settings and the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connections

from sessions_app import environment
from sessions_app.models import McpServer

_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")


class Unusable(Exception):
    """The server cannot be connected to as it is configured; the text says what to change, and no secret."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """One enabled server. ``command`` or ``url``, never both."""

    name: str
    trusted: bool
    timeout_seconds: float
    url: str = ""
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def enabled() -> dict[str, "Server | Unusable"]:
    """The enabled servers by name; what cannot be used is told in its place."""
    try:
        return {row.name: _server_or_reason(row) for row in McpServer.objects.filter(enabled=True)}
    finally:
        connections.close_all()  # called on threads that nobody else keeps connections on


def _server_or_reason(row: McpServer) -> "Server | Unusable":
    try:
        return _server(row)
    except Unusable as reason:
        return reason


def _server(row: McpServer) -> Server:
    timeout = float(row.timeout_seconds or 1)
    if row.transport == "stdio":
        command = settings.HOLDFAST_MCP_COMMANDS.get(row.command)
        if not command:
            raise Unusable(f"HOLDFAST_MCP_COMMANDS allows no command with the name {row.command!r}")
        return Server(name=row.name, trusted=row.trusted, timeout_seconds=timeout, command=tuple(command))
    return Server(
        name=row.name,
        trusted=row.trusted,
        timeout_seconds=timeout,
        url=_url(row.url),
        headers=_headers(row.authorization_variable),
    )


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise Unusable("its URL is malformed") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise Unusable("its URL must be an http or https URL without user and password")
    return url


def _headers(variable: str) -> dict[str, str]:
    if not variable:
        return {}
    if environment.is_ours(variable):
        raise Unusable(f"{variable} is a secret of this installation and is sent to nobody")
    value = environment.find_secret(variable) or ""
    if not _HEADER_VALUE.match(value):
        raise Unusable(f"the environment variable {variable} is not set to a header value")
    return {"Authorization": value}
