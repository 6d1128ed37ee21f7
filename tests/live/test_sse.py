"""Server-sent events: the same reader, in the words of EventSource."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from django.utils import timezone

from schema.problems import SessionNotFound
from sessions_app import sessions
from sessions_app.live import publish, reader, sse, switchboard
from sessions_app.live.entries import Entry
from tests.live.conftest import act, eventually
from tests.live.scene import Conversation, Picture, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("layer")]


def fields(block: bytes) -> dict[str, str]:
    assert block.endswith(b"\n\n")
    lines = block.decode().removesuffix("\n\n").split("\n")
    return dict(line.split(": ", 1) for line in lines)


async def frames(stream: AsyncIterator[bytes]) -> AsyncIterator[dict[str, str]]:
    async for block in stream:
        if block.startswith((b"event:", b"id:")):
            yield fields(block)


async def until_kind(stream: AsyncIterator[dict[str, str]], kind: str) -> list[dict[str, str]]:
    found = []
    async with asyncio.timeout(5):
        async for frame in stream:
            found.append(frame)
            if frame["event"] == kind:
                return found
    raise AssertionError(f"no {kind}")


async def test_events_have_their_seq_as_id_and_everything_else_has_none():
    scene = await act(Conversation.start)
    await act(scene.start_step)
    part = await act(scene.open_part)
    scene.say(part, "a\nb\r\n😀")
    await act(scene.checkpoint)
    await publish.finish()
    async with aclosing(sse.stream(scene.session_id, Entry(user_id=scene.user.pk), 0)) as stream:
        found = await until_kind(frames(stream), "ready")
        scene.say(part, "more")
        found += await until_kind(frames(stream), "delta")
    assert [frame.get("id") for frame in found] == ["1", "2", "3", None, None, None, None]
    assert [frame["event"] for frame in found] == [
        "event", "event", "event", "open", "status", "ready", "delta"
    ]  # fmt: skip
    assert json.loads(found[2]["data"])["type"] == "text.started"
    assert json.loads(found[2]["data"])["seq"] == 3
    assert json.loads(found[3]["data"])["text"] == "a\nb\r\n😀"
    assert json.loads(found[6]["data"])["text"] == "more"


async def test_a_client_that_goes_on_after_the_last_id_misses_nothing():
    scene = await act(Conversation.start)
    await act(scene.prompt)
    picture = Picture(after=1)
    async with aclosing(sse.stream(scene.session_id, Entry(user_id=scene.user.pk), 1)) as stream:
        for frame in await until_kind(frames(stream), "ready"):
            if frame["event"] == "event":
                picture.take(f'{{"t":"event","event":{frame["data"]}}}')
    assert picture.seq == 2


async def test_a_quiet_stream_has_comments(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "PING_SECONDS", 0.1)
    monkeypatch.setattr(switchboard, "LOOK_SECONDS", 0.05)
    scene = await act(Conversation.start)
    async with (
        aclosing(sse.stream(scene.session_id, Entry(user_id=scene.user.pk), 1)) as stream,
        asyncio.timeout(5),
    ):
        blocks = [await anext(stream) for _ in range(4)]
        assert blocks[0] == b"retry: 1000\n\n"
        assert blocks[3] == b": ping\n\n"


async def test_another_users_session_is_not_streamed():
    scene, stranger = await act(Conversation.start), await act(make_user)
    with pytest.raises(SessionNotFound):
        await anext(sse.stream(scene.session_id, Entry(user_id=stranger.pk), 0))


async def test_a_deleted_session_ends_the_stream_and_a_client_that_leaves_leaves_nothing():
    scene = await act(Conversation.start)
    ended: list[Any] = []

    async def read() -> None:
        async for block in sse.stream(scene.session_id, Entry(user_id=scene.user.pk), 0):
            ended.append(block)  # noqa: PERF401  (it is watched while it grows)

    reading = asyncio.create_task(read())
    await eventually(lambda: any(b"event: ready" in block for block in ended), what="ready")
    await act(sessions.delete, session_id=scene.session_id, now=timezone.now())
    publish.status(scene.session_id)
    async with asyncio.timeout(5):
        await reading
    await eventually(lambda: not switchboard.here()._readers, what="the reader's end")
