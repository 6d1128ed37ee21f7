"""The socket: its owner's frames act and are answered; nobody else's frame does anything, and none is sent to them."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.live import requests
from sessions_app.models import SessionInput
from tests.live.conftest import act, layer, on_layer
from tests.live.scene import Conversation
from tests.live.test_consumer import HERE, Socket, address, cookie_of, opened
from tests.support import world

__all__ = ["layer", "on_layer"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("layer")]

FRAMES: dict[str, tuple[dict[str, Any], str]] = {
    "prompt": ({"t": "prompt", "id": "msg_access-matrix", "text": "Hello"}, "admitted"),
    "sync": ({"t": "sync", "after": 1}, "ready"),
    "interrupt": ({"t": "interrupt"}, "interrupted"),
}
"""Every frame of a client, and what its owner is answered with."""

UNKNOWN = {"t": "unheard-of"}


def test_every_frame_is_named_here() -> None:
    assert set(FRAMES) == set(requests._KNOWN)


def stranger(name: str) -> User:
    if name == "administrator":
        return User.objects.create_superuser(name)
    return User.objects.create_user(name, is_staff=name == "staff")


@pytest.mark.parametrize("kind", FRAMES)
async def test_the_owners_frame_is_answered(kind: str) -> None:
    scene = await act(Conversation.start)
    frame, answered = FRAMES[kind]
    async with opened(address(scene), cookie=await act(cookie_of, scene.user)) as socket:
        await socket.frame("ready")
        await socket.send(frame)
        assert await socket.frame(answered)


@pytest.mark.parametrize("name", ["anonymous", "other", "staff", "administrator"])
async def test_nobody_elses_frame_does_anything_and_none_is_sent_to_them(name: str) -> None:
    scene = await act(Conversation.start)
    cookie = b"" if name == "anonymous" else await act(cookie_of, await act(stranger, name))
    before = await act(world.everything_of, scene.session_id)
    for frame in (*(frame for frame, _ in FRAMES.values()), UNKNOWN):
        socket = Socket(address(scene), cookie=cookie)
        assert await socket.open()
        await socket.send(frame)

        output = await socket.wire.receive_output(timeout=10)

        assert output["type"] == "websocket.close", output
        assert output["code"] == (4401 if name == "anonymous" else 4404)
        await socket.wire.disconnect(timeout=5)
    assert await act(world.everything_of, scene.session_id) == before
    assert not await act(SessionInput.objects.filter(pk="msg_access-matrix").exists)


@pytest.mark.parametrize(
    "origin", [b"https://elsewhere.example", b"null", b"http://testserver.elsewhere.example"]
)
async def test_a_page_from_elsewhere_opens_nothing_with_its_visitors_cookie(origin: bytes) -> None:
    scene = await act(Conversation.start)
    cookie = await act(cookie_of, scene.user)

    assert not await Socket(address(scene), cookie=cookie, origin=origin).open()
    assert not await Socket(address(scene), cookie=cookie, origin=None).open()
    assert origin != HERE
