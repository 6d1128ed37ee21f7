"""The embedded layer between real processes."""

import asyncio
import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import pytest_asyncio

from sessions_app.live import wire
from sessions_app.live.layer import UnixSocketChannelLayer
from tests.live.peer import Peer
from tests.support.waiting import until

Make = Callable[..., Peer]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layer.sock"


@pytest.fixture
def peers(path: Path) -> Iterator[Make]:
    made: list[Peer] = []

    def make(role: str) -> Peer:
        made.append(Peer("uds", str(path), role))
        return made[-1]

    yield make
    for peer in made:
        peer.kill()


@pytest_asyncio.fixture
async def layers(path: Path) -> AsyncIterator[Callable[..., UnixSocketChannelLayer]]:
    made: list[UnixSocketChannelLayer] = []

    def make(**options: Any) -> UnixSocketChannelLayer:
        made.append(UnixSocketChannelLayer(path=str(path), **options))
        return made[-1]

    yield make
    for layer in reversed(made):
        await layer.close()


def is_there(path: Path) -> bool:
    return path.exists()


def wait_until_connected(sender: Peer, receiver: Peer, group: str, marker: int) -> None:
    """Joining crosses processes: repeat a marker until it is heard."""
    until(lambda: sender.tell("send", group, marker, 1) and marker in receiver.heard, what="the marker")


def test_messages_cross_processes_in_both_directions_in_order(peers: Make):
    hub, client, other = peers("hub"), peers("client"), peers("client")
    hub.tell("join", "to-hub")
    client.tell("join", "to-client")
    wait_until_connected(client, hub, "to-hub", -1)
    wait_until_connected(hub, client, "to-client", -1)
    wait_until_connected(other, client, "to-client", -2)
    client.tell("send", "to-hub", 0, 500)
    hub.tell("send", "to-client", 1000, 500)
    hub.wait_heard(499)
    client.wait_heard(1499)
    assert [n for n in hub.heard if n >= 0] == list(range(500))
    assert [n for n in client.heard if n >= 1000] == list(range(1000, 1500))
    assert other.heard == []


def test_a_group_that_was_left_is_heard_no_more(peers: Make):
    hub, client = peers("hub"), peers("client")
    client.tell("join", "a")
    client.tell("join", "b")
    wait_until_connected(hub, client, "a", -1)
    client.tell("leave", "a")
    wait_until_connected(hub, client, "b", -2)
    hub.tell("send", "a", 1, 1)
    hub.tell("send", "b", 2, 1)
    client.wait_heard(2)
    assert 1 not in client.heard


def test_clients_come_back_by_themselves_after_the_hub_was_killed(peers: Make):
    hub, client, other = peers("hub"), peers("client"), peers("client")
    client.tell("join", "g")
    wait_until_connected(other, client, "g", -1)
    hub.kill()
    other.tell("send", "g", 1, 100)
    again = peers("hub")
    again.tell("join", "g")
    wait_until_connected(other, client, "g", -2)
    wait_until_connected(other, again, "g", -3)
    wait_until_connected(again, client, "g", -4)


def test_a_second_hub_does_not_take_a_living_one_and_takes_over_from_a_dead_one(peers: Make, path: Path):
    first, second, client = peers("hub"), peers("hub"), peers("client")
    inode = path.stat().st_ino
    first.tell("join", "g")
    second.tell("join", "g")
    wait_until_connected(client, first, "g", -1)
    wait_until_connected(client, second, "g", -2)
    assert path.stat().st_ino == inode
    first.kill()
    wait_until_connected(client, second, "g", -3)


def test_a_stale_socket_is_replaced_by_a_private_one(peers: Make, path: Path):
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    hub, client = peers("hub"), peers("client")
    client.tell("join", "g")
    wait_until_connected(hub, client, "g", -1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xc1",
        b"GET / HTTP/1.1\r\n\r\n",
        msgpack.packb([9, "g:x", b""]),
        msgpack.packb([0, "", b""]),
        msgpack.packb([0, "g:x"]),
        msgpack.packb([0, 5, b""]),
        msgpack.packb([0, "g:x", "text"]),
        msgpack.packb([0, "g:x", b"", 1]),
        msgpack.packb([0, "k" * 500, b""]),
        msgpack.packb({"a": 1}),
        b"\xc6\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
    ],
)
async def test_a_malformed_frame_closes_that_client_and_no_other(
    garbage: bytes, path: Path, layers: Callable[..., UnixSocketChannelLayer]
):
    layer = layers(hosts_hub=True)
    channel = await layer.new_channel()
    await layer.group_add("g", channel)
    _, good = await asyncio.open_unix_connection(str(path))
    bad_reader, bad = await asyncio.open_unix_connection(str(path))
    bad.write(garbage)
    if garbage[:1] in (b"\xc6", b"\xdb"):
        # Announced as four gigabytes: believed up to the largest buffer, and not a byte longer.
        bad.write(b"x" * (5 << 20))
    try:
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionError):
                assert await bad_reader.read() == b""
            good.write(wire.pack(wire.PUBLISH, "g:g", wire.encode({"type": "test", "n": 1})))
            assert await layer.receive(channel) == {"type": "test", "n": 1}
    finally:
        for writer in (good, bad):
            writer.close()


async def test_a_payload_that_is_no_message_is_skipped(
    path: Path, layers: Callable[..., UnixSocketChannelLayer]
):
    layer = layers(hosts_hub=True)
    channel = await layer.new_channel()
    await layer.group_add("g", channel)
    _, writer = await asyncio.open_unix_connection(str(path))
    for payload in (b"", b"\xc1", msgpack.packb(5), msgpack.packb({"n": 1}), wire.encode({"type": "good"})):
        writer.write(wire.pack(wire.PUBLISH, "g:g", payload))
    async with asyncio.timeout(5):
        assert await layer.receive(channel) == {"type": "good"}
    writer.close()


async def test_a_receiver_that_does_not_keep_up_loses_the_newest_and_costs_bounded_memory(
    layers: Callable[..., UnixSocketChannelLayer],
):
    layer = layers(hosts_hub=True, capacity=10)
    channel = await layer.new_channel()
    await layer.group_add("g", channel)
    for n in range(50):
        await layer.group_send("g", {"type": "test", "n": n})
    assert layer.dropped.total == 40
    assert [(await layer.receive(channel))["n"] for _ in range(10)] == list(range(10))
    await layer.group_send("g", {"type": "test", "n": 99})
    assert (await layer.receive(channel))["n"] == 99


def test_a_client_that_does_not_read_costs_the_publisher_nothing(peers: Make, path: Path):
    hub = peers("hub")
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.connect(str(path))
        deaf.sendall(wire.pack(wire.JOIN, "g:g"))
        until(lambda: hub.tell("flood", "g", 500_000, 20)["dropped"], what="a full buffer")
        answer = hub.tell("flood", "g", 500_000, 500)
    assert answer["dropped"] >= 500
    assert answer["seconds"] < 5
    assert hub.tell("send", "g", 1, 1) == "done"


async def test_publishing_without_a_hub_neither_waits_nor_fails(
    layers: Callable[..., UnixSocketChannelLayer],
):
    layer = layers(hosts_hub=False)
    started = time.monotonic()
    for n in range(1000):
        await layer.group_send("g", {"type": "test", "n": n})
        if n % 100 == 0:
            await asyncio.sleep(0)
    assert time.monotonic() - started < 2
    await asyncio.sleep(0.05)
    assert layer.dropped.total > 0


async def test_what_is_published_while_the_connection_is_made_arrives(
    layers: Callable[..., UnixSocketChannelLayer],
):
    hub, client = layers(hosts_hub=True), layers(hosts_hub=False)
    channel = await hub.new_channel()
    await hub.group_add("g", channel)
    for n in range(20):
        await client.group_send("g", {"type": "test", "n": n})
    async with asyncio.timeout(5):
        assert [(await hub.receive(channel))["n"] for _ in range(20)] == list(range(20))


async def test_a_message_that_is_too_large_is_dropped_and_the_next_one_arrives(
    layers: Callable[..., UnixSocketChannelLayer],
):
    hub, client = layers(hosts_hub=True), layers(hosts_hub=False)
    channel = await hub.new_channel()
    await hub.group_add("g", channel)
    await client.group_send("g", {"type": "test", "bulk": "x" * (wire.LARGEST_PAYLOAD + 1)})
    await client.group_send("g", {"type": "good"})
    async with asyncio.timeout(5):
        assert await hub.receive(channel) == {"type": "good"}
    assert client.dropped.total == 1


async def test_any_loop_of_the_web_process_can_publish(layers: Callable[..., UnixSocketChannelLayer]):
    layer = layers(hosts_hub=True)
    channel = await layer.new_channel()
    await layer.group_add("g", channel)

    async def publish() -> None:
        await layer.serve()
        await layer.group_send("g", {"type": "test", "n": 7})
        await asyncio.sleep(0.05)
        await layer.close()

    thread = threading.Thread(target=lambda: asyncio.run(publish()))
    thread.start()
    async with asyncio.timeout(5):
        assert (await layer.receive(channel))["n"] == 7
    await asyncio.get_running_loop().run_in_executor(None, thread.join)


async def test_a_receiver_gets_a_copy_of_its_own(layers: Callable[..., UnixSocketChannelLayer]):
    layer = layers(hosts_hub=True)
    channels = [await layer.new_channel() for _ in range(2)]
    for channel in channels:
        await layer.group_add("g", channel)
    await layer.group_send("g", {"type": "test", "items": [1]})
    first, second = [await layer.receive(channel) for channel in channels]
    first["items"].append(2)
    assert second == {"type": "test", "items": [1]}


async def test_cancelling_a_receive_ends_the_channel_and_its_memberships(
    layers: Callable[..., UnixSocketChannelLayer],
):
    layer = layers(hosts_hub=True)
    channel = await layer.new_channel()
    await layer.group_add("g", channel)
    receiving = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0)
    receiving.cancel()
    await asyncio.wait({receiving})
    node = layer._node()
    assert node._members == {}
    assert node._mailboxes == {}


async def test_closing_removes_the_socket_and_frees_the_place_of_the_hub(
    path: Path, layers: Callable[..., UnixSocketChannelLayer]
):
    first = layers(hosts_hub=True)
    await first.serve()
    assert is_there(path)
    await first.close()
    assert not is_there(path)
    second = layers(hosts_hub=True)
    await second.serve()
    assert is_there(path)


async def test_bad_names_are_refused(layers: Callable[..., UnixSocketChannelLayer]):
    layer = layers(hosts_hub=True)
    for name in ("", "a b", "x" * 101, "a/b"):
        with pytest.raises(TypeError):
            await layer.group_send(name, {"type": "test"})


def test_the_default_is_that_only_the_web_process_may_be_the_hub(settings: Any, path: Path):
    settings.HOLDFAST_ROLE = "web"
    assert UnixSocketChannelLayer(path=str(path)).hosts_hub
    for role in ("worker", None):
        settings.HOLDFAST_ROLE = role
        assert not UnixSocketChannelLayer(path=str(path)).hosts_hub
    assert os.listdir(path.parent) == []
