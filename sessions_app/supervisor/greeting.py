"""Tells the operator where to go, once the web server really answers."""

from http.client import HTTPConnection, HTTPException
from typing import Final

from django.conf import settings
from django.db import connection

from sessions_app.web import first_run

_PATIENCE_SECONDS: Final = 2.0
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def reachable(host: str) -> str:
    """An address of this machine under which a server that listens on ``host`` is reached."""
    return _ANY_ADDRESS.get(host, host)


def base_url(*, host: str, port: int) -> str:
    name = reachable(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def public_url(*, host: str, port: int) -> str:
    """Where people come in: the first origin that was named, which a proxy brings here, else this server itself."""
    named = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    return named[0] if named else base_url(host=host, port=port)


def answers(*, host: str, port: int) -> bool:
    """Whether an HTTP server is behind the port and its application is loaded."""
    probe = HTTPConnection(reachable(host), port, timeout=_PATIENCE_SECONDS)
    try:
        probe.request("GET", "/healthz")
        return probe.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        probe.close()


def greeting(*, url: str) -> list[str]:
    """The lines that say how to open the chat: with a link for the first administrator if there is none."""
    try:
        link = first_run.issue_link(url)
    finally:
        connection.close()
    if link is None:
        return [f"Open {url}/"]
    return ["There is no account yet. This link makes the administrator's, once:", f"Open {link}"]
