"""A real daphne neither keeps for a deaf client what it does not read, nor waits for it for ever."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import flood
from tests.support.processes import free_port
from tests.support.waiting import until

REQUESTS = {
    "websocket": b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")


@pytest.fixture
def daphne() -> Iterator[tuple[int, int]]:
    """Port and pid of a daphne that floods."""
    port = free_port()
    command = [sys.executable, "-m", "daphne", "-p", str(port), "-v", "0", "tests.live.flood:application"]
    with subprocess.Popen(command) as process:
        try:
            until(lambda: _connect(port), within=30, what="daphne").close()  # type: ignore[union-attr]
            yield port, process.pid
        finally:
            process.kill()


def _connect(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=20)
    except OSError:
        return None


def _most_memory(pid: int) -> int:
    """Bytes the process has used at its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_client_that_reads_nothing_is_cut_off_and_costs_no_memory(kind: str, daphne: tuple[int, int]):
    port, pid = daphne
    before = _most_memory(pid)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as deaf:
        deaf.sendall(REQUESTS[kind])
        until(lambda: _is_cut(deaf), within=30, what="the cut")
    assert _most_memory(pid) - before < flood.PIECE * flood.PIECES / 10


def _is_cut(deaf: socket.socket) -> bool:
    """Whether the server closed its end: the kernel then refuses what we send."""
    try:
        deaf.send(b"")
        return deaf.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) != b"\x01"
    except OSError:
        return True


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_client_that_reads_gets_everything(kind: str, daphne: tuple[int, int]):
    port, _ = daphne
    received = 0
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(REQUESTS[kind])
        while received < flood.PIECE * flood.PIECES:
            data = client.recv(1 << 20)
            assert data, f"cut off after {received} bytes"
            received += len(data)
