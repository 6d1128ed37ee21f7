"""Layers for the tests of the live stream: one that misbehaves on purpose, and the two real ones."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from channels.db import database_sync_to_async
from channels.layers import channel_layers

from sessions_app.live import publish
from sessions_app.live.layer import UnixSocketChannelLayer
from tests.support import servers
from tests.support.requirements import need


class TroubledLayer:
    """Loses, repeats and delays at random, so that later messages overtake earlier ones."""

    def __init__(self, *, seed: int = 0, lose: float = 0.0, repeat: float = 0.0, delay: float = 0.0) -> None:
        self.chance = random.Random(seed)
        self.lose, self.repeat, self.delay = lose, repeat, delay
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.is_away = False
        self._queues: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self._groups: dict[str, set[str]] = {}

    async def new_channel(self) -> str:
        self._fail_if_away()
        channel = f"troubled.{uuid4().hex}"
        self._queues[channel] = asyncio.Queue()
        return channel

    async def receive(self, channel: str) -> dict[str, Any]:
        return await self._queues[channel].get()

    async def group_add(self, group: str, channel: str) -> None:
        self._fail_if_away()
        self._groups.setdefault(group, set()).add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        self._groups.get(group, set()).discard(channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self._fail_if_away()
        self.sent.append((group, message))
        copies = 1 + (self.chance.random() < self.repeat)
        for _ in range(copies):
            if self.chance.random() >= self.lose:
                loop = asyncio.get_running_loop()
                loop.call_later(self.chance.random() * self.delay, self._deliver, group, message)

    def members(self) -> set[str]:
        return {group for group, channels in self._groups.items() if channels}

    def _deliver(self, group: str, message: dict[str, Any]) -> None:
        for channel in self._groups.get(group, ()):
            self._queues[channel].put_nowait(message)

    def _fail_if_away(self) -> None:
        if self.is_away:
            raise ConnectionError("the layer is away")


async def eventually(
    condition: Callable[[], Any], *, within: float = 10.0, what: str = "the condition"
) -> Any:
    """The first true value of ``condition``, while the loop goes on; fails with ``what`` after that time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not (value := condition()):
        assert loop.time() < deadline, f"{what} did not become true within {within:g} s"
        await asyncio.sleep(0.005)
    return value


def act(verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Do something with the database on a thread, connection closed in the end."""
    return database_sync_to_async(verb)(*arguments, **named)


@pytest_asyncio.fixture
async def on_layer() -> AsyncIterator[Callable[[Any], Any]]:
    """Make a layer the site's, with the publisher on this test's loop."""
    publish.use_loop(asyncio.get_running_loop())
    before = channel_layers.backends.get("default")

    def use(layer: Any) -> Any:
        channel_layers.set("default", layer)
        return layer

    yield use
    await publish.finish()
    publish.use_loop(None)
    if before is None:
        channel_layers.backends.pop("default", None)
    else:
        channel_layers.set("default", before)


@pytest_asyncio.fixture
async def layer(on_layer: Callable[[Any], Any]) -> TroubledLayer:
    """A layer without trouble, until a test gives it some."""
    made: TroubledLayer = on_layer(TroubledLayer())
    return made


@pytest_asyncio.fixture(params=["unix socket", "redis"])
async def real_layer(
    request: pytest.FixtureRequest, tmp_path: Path, on_layer: Callable[[Any], Any]
) -> AsyncIterator[Any]:
    """Both layers that the product can be configured with."""
    if request.param == "redis":
        need("redis")
        from channels_redis.pubsub import RedisPubSubChannelLayer

        redis = on_layer(RedisPubSubChannelLayer(hosts=[servers.redis_url()], prefix=uuid4().hex))
        yield redis
        await asyncio.sleep(0)
        await redis.flush()
        return
    embedded = on_layer(UnixSocketChannelLayer(path=str(tmp_path / "layer.sock"), hosts_hub=True))
    yield embedded
    await embedded.close()
