"""The API as a real web process serves it."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schema.limits import MAX_BODY_BYTES
from sessions_app.api import threads
from tests.support.processes import Instance, Response
from tests.support.waiting import until


@dataclass(frozen=True)
class Served:
    instance: Instance
    token: str

    def call(self, method: str, path: str, body: Any = None) -> Response:
        return self.instance.request(method, f"/api/v1{path}", body, token=self.token, timeout=30)

    def session(self) -> str:
        return str(self.call("POST", "/sessions", {}).json()["id"])

    def send(self, head: str, body: bytes = b"", *, authorized: bool = True) -> socket.socket:
        """A request written by hand, on a connection of its own."""
        connection = socket.create_connection(("127.0.0.1", self.instance.port), timeout=30)
        token = [f"Authorization: Token {self.token}"] if authorized else []
        lines = [head, "Host: 127.0.0.1", *token, "", ""]
        connection.sendall("\r\n".join(lines).encode() + body)
        return connection


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory: Path = tmp_path_factory.mktemp("served")
    with Instance.prepare(directory) as instance:
        instance.start("--web-only")
        instance.manage(
            "createsuperuser",
            "--noinput",
            DJANGO_SUPERUSER_USERNAME="ann",
            DJANGO_SUPERUSER_PASSWORD="a long enough one",
            DJANGO_SUPERUSER_EMAIL="ann@example.org",
        )
        yield Served(instance, instance.manage("create_api_token", "ann").stdout.strip())


def test_a_prompt_is_admitted_and_read_back(served: Served) -> None:
    session_id = served.session()

    admitted = served.call("POST", f"/sessions/{session_id}/prompts", {"text": "Hello 😀"})

    assert admitted.status == 201
    assert served.call("GET", f"/sessions/{session_id}/prompts").json()["results"] == [admitted.json()]


def test_many_who_wait_hold_up_nobody(served: Served) -> None:
    session_id = served.session()
    served.call("POST", f"/sessions/{session_id}/prompts", {"text": "Nobody answers here"})
    waiters = 5 * threads.THREADS

    def wait() -> str:
        answer = served.call("POST", f"/sessions/{session_id}/wait", {"timeout": 20})
        return str(answer.json()["state"])

    with ThreadPoolExecutor(waiters) as pool:
        waiting = [pool.submit(wait) for _ in range(waiters)]
        begin = time.monotonic()
        assert served.call("GET", "/me").status == 200
        interrupted = served.call("POST", f"/sessions/{session_id}/interrupt")
        answered_within = time.monotonic() - begin
        states = {each.result() for each in waiting}

    assert interrupted.json()["interrupted"] is True
    assert states == {"idle"}
    assert answered_within < 10


def test_a_stream_begins_after_the_last_event_that_was_seen(served: Served) -> None:
    session_id = served.session()
    served.call("POST", f"/sessions/{session_id}/prompts", {"text": "Hello", "wake": False})

    head = f"GET /api/v1/sessions/{session_id}/stream?after=0 HTTP/1.1\r\nLast-Event-ID: 1"
    with served.send(head) as connection:
        received = _read_until(connection, b"prompt.admitted")
        served.call("PATCH", f"/sessions/{session_id}", {"title": "Later"})
        received += _read_until(connection, b"session.updated")

    assert b" 200 OK" in received
    assert b"text/event-stream" in received
    assert b"id: 2\n" in received
    assert b"id: 3\n" in received
    assert b"session.created" not in received


@pytest.mark.parametrize("position", ["-1", "x", "9" * 40, "1.5"])
def test_a_position_that_is_none_begins_no_stream(served: Served, position: str) -> None:
    head = f"GET /api/v1/sessions/{served.session()}/stream HTTP/1.1\r\nLast-Event-ID: {position}"
    with served.send(head) as connection:
        received = _read_until(connection, b"Last-Event-ID")

    assert b" 400 " in received


def test_a_client_that_leaves_disturbs_nobody(served: Served) -> None:
    session_id = served.session()
    served.call("POST", f"/sessions/{session_id}/prompts", {"text": "Nobody answers here"})
    before = len(served.instance.output)
    for _ in range(3 * threads.THREADS):
        body = json.dumps({"timeout": 60}).encode()
        head = (
            f"POST /api/v1/sessions/{session_id}/wait HTTP/1.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        )
        served.send(head, body).close()

    assert served.call("GET", f"/sessions/{session_id}/status").status == 200
    assert "Traceback" not in served.instance.output[before:]


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("evil.example", 400)])
def test_the_answers_are_protected_like_pages(served: Served, host: str, status: int) -> None:
    request = f"GET /api/v1/me HTTP/1.1\r\nHost: {host}\r\nAuthorization: Token {served.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.instance.port), timeout=30) as connection:
        connection.sendall(request.encode())
        head = _read_until(connection, b"\r\n\r\n").decode("latin1").lower()

    assert f" {status} " in head.splitlines()[0]
    for line in (
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
        "cross-origin-opener-policy: same-origin",
    ):
        assert f"\r\n{line}\r\n" in head
    for line in ("x-frame-options: deny", "cache-control: no-store"):
        assert (f"\r\n{line}\r\n" in head) == (status == 200)
    assert "set-cookie" not in head


def test_a_client_does_not_say_where_the_site_is_mounted(served: Served) -> None:
    """Else a page could be asked for as if it were of the API, which looks for forged requests in its own way."""
    with served.send("POST /api/v1/sign-in HTTP/1.1\r\nDaphne-Root-Path: /api/v1") as connection:
        received = _read_until(connection, b"}")

    assert b" 404 " in received
    assert b"application/problem+json" in received


def test_a_body_without_a_length_is_limited_too(served: Served) -> None:
    head = "POST /api/v1/sessions HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
    chunk = b" " * (1024 * 1024)
    chunks = (b"%x\r\n%b\r\n" % (len(chunk), chunk)) * (MAX_BODY_BYTES // len(chunk) + 1)
    with served.send(head, chunks + b"0\r\n\r\n") as connection:
        received = _read_until(connection, b"body_too_large")

    assert b" 413 " in received


@pytest.mark.parametrize("path", ["%FF", "sessions/%ED%A0%BD", "sessions/ses_12345678%00", "..%2f..%2fetc"])
def test_addresses_that_are_no_text_are_not_found(served: Served, path: str) -> None:
    with served.send(f"GET /api/v1/{path} HTTP/1.1") as connection:
        received = _read_until(connection, b"}")

    assert b" 404 " in received
    assert b"application/problem+json" in received


def test_the_web_session_of_a_browser_reads_and_writes_with_csrf(served: Served) -> None:
    session_id = served.session()
    made = served.instance.manage("shell", "-v", "0", "-c", _SIGN_IN).stdout.strip()
    secret = "a" * 32

    def ask(method: str, path: str, *headers: str) -> bytes:
        lines = [
            f"{method} /api/v1{path} HTTP/1.1",
            f"Cookie: sessionid={made}; csrftoken={secret}",
            *headers,
        ]
        with served.send("\r\n".join(lines), authorized=False) as connection:
            return _read_until(connection, b"}")

    assert b"200 OK" in ask("GET", f"/sessions/{session_id}")
    assert b" 403 " in ask("POST", f"/sessions/{session_id}/ticket", "Content-Length: 0")
    assert b" 201 " in ask(
        "POST", f"/sessions/{session_id}/ticket", "Content-Length: 0", f"X-CSRFToken: {secret}"
    )


_SIGN_IN = """
from django.contrib.auth import get_user_model
from django.test import Client
client = Client()
client.force_login(get_user_model().objects.get(username="ann"))
print(client.cookies["sessionid"].value)
"""


def _read_until(connection: socket.socket, wanted: bytes) -> bytes:
    received = bytearray()

    def look() -> bool:
        received.extend(connection.recv(65536))
        return wanted in received

    until(look, within=20, what=f"{wanted!r} in {bytes(received)!r}")
    return bytes(received)


def test_a_long_session_is_exported_whole_by_many_at_once(served: Served) -> None:
    session_id = served.session()
    text = "x" * 100_000
    for number in range(5):
        served.call("POST", f"/sessions/{session_id}/prompts", {"text": f"{number} {text}"})

    with ThreadPoolExecutor(2 * threads.THREADS) as pool:
        files = list(
            pool.map(
                lambda _: served.call("GET", f"/sessions/{session_id}/export"), range(2 * threads.THREADS)
            )
        )

    for file in files:
        held = file.json()
        assert [prompt["text"] for prompt in held["prompts"]] == [f"{number} {text}" for number in range(5)]
        assert held["events"][-1]["seq"] == held["session"]["head_seq"]
