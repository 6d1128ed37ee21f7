import asyncio
import json
import socket
from typing import Any

import pytest
from django.test import override_settings

from sessions_app.tools import registry
from sessions_app.tools.builtin.send_webhook import is_allowed, send_webhook
from sessions_app.tools.enter import Entered, Failed, Succeeded
from sessions_app.tools.port import INTERRUPTED
from tests.tools.calls import call
from tests.tools.raw_server import RawServer, always, response, serving


async def send(server: RawServer, **payload: Any) -> Entered:
    with override_settings(HOLDFAST_WEBHOOK_URLS=(f"{server.url}/hook",)):
        return await call(send_webhook, url=f"{server.url}/hook", payload=payload)


async def test_the_message_is_posted_once_with_the_key_of_the_call() -> None:
    async with serving(always(response(b"thanks", content_type="text/plain"))) as server:
        entered = await send(server, name="ä", n=1)

    assert isinstance(entered, Succeeded)
    assert entered.output.content == "The webhook answered with status 200.\n\nthanks"
    (request,) = server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook HTTP/1.1\r\n")
    assert b"\r\nIdempotency-Key: key-1\r\n" in head + b"\r\n"
    assert b"\r\nContent-Type: application/json\r\n" in head
    assert json.loads(body) == {"name": "ä", "n": 1}


@pytest.mark.parametrize("status", ["400 Bad", "404 Not Found", "429 Slow", "500 Oops", "503 Away"])
async def test_an_answer_that_refuses_is_a_known_failure_and_nothing_is_sent_again(status: str) -> None:
    async with serving(always(response(b"no", status=status))) as server:
        entered = await send(server)

    assert isinstance(entered, Failed)
    assert entered.known
    assert f"status {status[:3]}" in entered.error
    assert server.connections == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with serving(always(response(b""))) as elsewhere:
        moved = response(b"", status=status, headers=f"Location: {elsewhere.url}/\r\n")
        async with serving(always(moved)) as server:
            entered = await send(server)

    assert isinstance(entered, Failed)
    assert elsewhere.connections == 0
    assert server.connections == 1


CUTS = {
    "closed without an answer": b"",
    "cut in the status line": b"HTTP/1.1 20",
    "cut in the head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "no HTTP": b"\x15\x03\x01\x00\x02\x02\x16" * 100,
    "a gateway that waited in vain": response(b"", status="504 Gateway Timeout"),
    "a gateway without the server": response(b"", status="502 Bad Gateway"),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
async def test_no_answer_after_bytes_may_have_left_is_unknown_and_nothing_is_sent_again(cut: bytes) -> None:
    async with serving(always(cut)) as server:
        entered = await send(server)

    assert entered == Failed(error=INTERRUPTED, known=False)
    assert server.connections == 1


async def test_an_answer_whose_body_breaks_off_counts_by_its_status() -> None:
    whole = response(b"x" * 100)

    async with serving(always(whole[:-50])) as server:
        assert isinstance(await send(server), Succeeded)


async def test_a_server_that_cannot_be_reached_is_known_not_to_have_got_it() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    entered = await send(RawServer(port=port))

    assert isinstance(entered, Failed)
    assert entered.known
    assert "nothing was sent" in entered.error


async def test_a_connection_that_ends_in_its_tls_handshake_is_known_not_to_have_got_it() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        with override_settings(HOLDFAST_WEBHOOK_URLS=(url,)):
            entered = await call(send_webhook, url=url, payload={})

    assert isinstance(entered, Failed)
    assert entered.known
    assert "nothing was sent" in entered.error


async def test_a_cancelled_call_closes_its_connection() -> None:
    arrived, closed = asyncio.Event(), asyncio.Event()

    async def write_until_closed(_: bytes, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    async with serving(write_until_closed) as server:
        sending = asyncio.create_task(send(server))
        await arrived.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(closed.wait(), 5)


ALLOWED = ("https://hooks.example.com/a/", "https://exact.example.com/in?key=1", "http://10.0.0.5:8080/x")

URLS = [
    ("https://hooks.example.com/a/b", True),
    ("https://HOOKS.example.com/a/b/c", True),
    ("https://hooks.example.com:443/a/b", True),
    ("https://hooks.example.com/a/", True),
    ("https://exact.example.com/in?key=1", True),
    ("http://10.0.0.5:8080/x", True),
    ("https://hooks.example.com/a", False),
    ("https://hooks.example.com/ab", False),
    ("https://hooks.example.com/", False),
    ("http://hooks.example.com/a/b", False),
    ("https://hooks.example.com:8443/a/b", False),
    ("https://hooks.example.com.evil.com/a/b", False),
    ("https://hooks.example.com@evil.com/a/b", False),
    ("https://evil.com/https://hooks.example.com/a/b", False),
    ("https://evil.com\\@hooks.example.com/a/b", False),
    ("https://user@hooks.example.com/a/b", False),
    ("https://hooks.example.com/a/../b", False),
    ("https://hooks.example.com/a/..%2fb", False),
    ("https://hooks.example.com/a/%2e%2e/b", False),
    ("https://hooks.example.com/a//evil", False),
    ("https://hooks.example.com/a/b?x=1", False),
    ("https://hooks.example.com/a/b#x", False),
    ("https://hooks.example.com/a/b;x", False),
    ("https://exact.example.com/in?key=2", False),
    ("https://exact.example.com/in", False),
    ("http://10.0.0.5:8080/x/y", False),
    ("http://10.0.0.5:8080/xy", False),
    (" https://hooks.example.com/a/b", False),
    ("https://hooks.example.com/a/b\n", False),
    ("https://höoks.example.com/a/b", False),
    ("hooks.example.com/a/b", False),
    ("file:///etc/passwd", False),
    ("https://[::1", False),
    ("", False),
]


@pytest.mark.parametrize(("url", "allowed"), URLS)
def test_only_what_the_operator_allowed_is_sent_to(url: str, allowed: bool) -> None:
    assert is_allowed(url, ALLOWED) is allowed


async def test_a_url_that_is_not_allowed_is_not_connected_to() -> None:
    async with serving(always(response())) as server:
        with override_settings(HOLDFAST_WEBHOOK_URLS=("https://other.example.com/",)):
            entered = await call(send_webhook, url=f"{server.url}/hook", payload={})

    assert isinstance(entered, Failed)
    assert entered.known
    assert server.connections == 0


async def test_a_message_over_the_limit_is_not_sent() -> None:
    async with serving(always(response())) as server:
        entered = await send(server, text="x" * 300_000)

    assert isinstance(entered, Failed)
    assert entered.known
    assert server.connections == 0


def test_the_tool_is_there_only_where_some_url_is_allowed() -> None:
    assert "send_webhook" not in registry.local()

    with override_settings(HOLDFAST_WEBHOOK_URLS=("https://hooks.example.com/",)):
        assert registry.local()["send_webhook"].effect == "side_effect"
