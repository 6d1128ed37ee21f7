"""The instruments of a real installation: web and worker are two processes."""

import contextlib
import json
import re
import socket

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from schema.limits import MAX_FRAME_BYTES, MAX_PROMPT_CHARACTERS
from sessions_app.live import inbound
from tests.operations.conftest import House
from tests.support.waiting import until


def sample(house: House, line: str) -> float:
    found = re.search(
        rf"^{re.escape(line)} (\S+)$", house.call("GET", "/metrics").body.decode(), re.MULTILINE
    )
    assert found, line
    return float(found[1])


def test_a_started_installation_is_ready(house: House) -> None:
    answer = house.instance.request("GET", "/readyz")

    assert (answer.status, answer.json()["status"]) == (200, "ready")


def test_what_the_worker_counted_is_told_by_the_web_process(house: House) -> None:
    session_id = house.session()
    house.prompt(session_id, "[[words 3]]")
    assert house.wait(session_id)["state"] == "idle"

    completed = 'holdfast_attempts_total{error_class="",outcome="completed"}'
    until(lambda: sample(house, completed) >= 1, what="the worker's figures")

    assert sample(house, "holdfast_wake_to_dispatch_seconds_count") >= 1
    assert 0 < sample(house, "holdfast_wake_to_dispatch_seconds_sum") < 30
    assert sample(house, 'holdfast_prompts_admitted_total{origin="user"}') >= 1


def request_of(house: House, head: str, body: bytes) -> bytes:
    """All that is answered to a request written by hand. The server may close before it has read the body."""
    with socket.create_connection(("127.0.0.1", house.instance.port), timeout=30) as connection:
        connection.sendall(f"{head}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        with contextlib.suppress(OSError):
            connection.sendall(body)
        received = b""
        with contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                received += piece
        return received


def test_a_body_that_is_far_too_long_is_refused_before_it_is_sent(house: House) -> None:
    head = f"POST /sign-in HTTP/1.1\r\nContent-Length: {inbound.LARGEST_BODY + 1}"

    answer = request_of(house, head, b"")

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"body_too_large" in answer


def test_a_body_without_a_length_is_refused_at_the_limit_and_nobody_acts_on_what_came(house: House) -> None:
    chunk = b" " * (1 << 20)
    chunks = (b"%x\r\n%b\r\n" % (len(chunk), chunk)) * (inbound.LARGEST_BODY // len(chunk))

    answer = request_of(
        house, "POST /sign-in HTTP/1.1\r\nTransfer-Encoding: chunked", chunks + b"1\r\nx\r\n0\r\n\r\n"
    )

    assert answer in (b"", answer[: answer.find(b"}") + 1])
    assert b" 200 " not in answer
    assert house.instance.request("GET", "/healthz").status == 200


def test_a_frame_that_is_too_long_ends_its_socket_and_the_longest_prompt_does_not(house: House) -> None:
    session_id = house.session()
    ticket = house.call("POST", f"/api/v1/sessions/{session_id}/ticket").json()["ticket"]
    url = f"ws://127.0.0.1:{house.instance.port}/ws/sessions/{session_id}?ticket={ticket}"
    with connect(url, max_size=None) as client:
        longest = json.dumps(
            {"t": "prompt", "id": "msg_longest-prompt", "text": "\U0001f600" * MAX_PROMPT_CHARACTERS}
        )
        client.send(longest)
        while json.loads(client.recv(timeout=30))["t"] != "admitted":
            pass
        with pytest.raises(ConnectionClosed):
            client.send("x" * (MAX_FRAME_BYTES + 1))
            while True:
                client.recv(timeout=30)
