"""What a proxy says of the client is believed as far as our own proxies go."""

from typing import Any

import pytest

from config.proxies import Forwarded


async def seen(proxies: int, *headers: tuple[str, str], kind: str = "http") -> tuple[str, str]:
    """Client and scheme as the application sees them."""
    found: dict[str, Any] = {}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.update(scope)

    scope = {
        "type": kind,
        "client": ["10.0.0.1", 999],
        "scheme": "http" if kind == "http" else "ws",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    await Forwarded(application, proxies=proxies)(scope, None, None)
    assert scope["client"] == ["10.0.0.1", 999]
    return found["client"][0], found["scheme"]


async def test_without_proxies_nobody_is_believed() -> None:
    headers = ("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https")

    assert await seen(0, *headers) == ("10.0.0.1", "http")


@pytest.mark.parametrize(
    ("proxies", "line", "client"),
    [
        (1, "192.0.2.1", "192.0.2.1"),
        (1, "6.6.6.6, 192.0.2.1", "192.0.2.1"),
        (2, "6.6.6.6, 192.0.2.1, 10.0.0.9", "192.0.2.1"),
        (2, "192.0.2.1", "10.0.0.1"),
        (1, " , ", "10.0.0.1"),
    ],
)
async def test_the_address_is_the_one_that_our_outermost_proxy_saw(proxies, line, client) -> None:
    assert (await seen(proxies, ("x-forwarded-for", line)))[0] == client


async def test_a_header_that_comes_twice_is_one_list() -> None:
    headers = ("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.1")

    assert (await seen(1, *headers))[0] == "192.0.2.1"


@pytest.mark.parametrize(
    ("kind", "told", "scheme"),
    [("http", "https", "https"), ("websocket", "https", "wss"), ("http", "gopher", "http")],
)
async def test_the_scheme_is_what_the_proxy_says_it_was(kind: str, told: str, scheme: str) -> None:
    assert (await seen(1, ("x-forwarded-proto", told), kind=kind))[1] == scheme
