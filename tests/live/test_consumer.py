"""The socket: who may open it, what it answers, and that nothing sent to it does harm."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from schema.limits import MAX_PROMPT_CHARACTERS, Rate
from sessions_app import identity, sessions
from sessions_app.live import access, publish, requests, switchboard, tickets
from sessions_app.live.entries import Entry
from sessions_app.live.routing import websocket_urlpatterns
from sessions_app.models import Session, SessionInput
from tests.live.conftest import TroubledLayer, act, eventually
from tests.live.scene import Conversation, Picture, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("layer")]

APPLICATION = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
HOST = b"testserver"
HERE = b"http://testserver"


def cookie_of(user: User) -> bytes:
    client = Client()
    client.force_login(user)
    return f"{django_settings.SESSION_COOKIE_NAME}={client.cookies[django_settings.SESSION_COOKIE_NAME].value}".encode()


class Socket:
    """A client's end."""

    def __init__(
        self, path: str, *, cookie: bytes = b"", origin: bytes | None = HERE, host: bytes = HOST
    ) -> None:
        headers = [(b"host", host)]
        if cookie:
            headers.append((b"cookie", cookie))
        if origin is not None:
            headers.append((b"origin", origin))
        self.wire = WebsocketCommunicator(APPLICATION, path, headers=headers)
        self.picture = Picture()

    async def open(self) -> bool:
        connected, _ = await self.wire.connect(timeout=5)
        return bool(connected)

    async def send(self, frame: Any) -> None:
        await self.wire.send_to(text_data=frame if isinstance(frame, str) else json.dumps(frame))

    async def frame(self, kind: str) -> dict[str, Any]:
        """The next frame of that kind; others go into the picture."""
        async with asyncio.timeout(5):
            while True:
                output = await self.wire.receive_output(timeout=5)
                assert output["type"] == "websocket.send", output
                frame: dict[str, Any] = json.loads(output["text"])
                if hasattr(self.picture, f"_{frame['t']}"):
                    self.picture.take(output["text"])
                if frame["t"] == kind:
                    return frame

    async def close_code(self) -> int:
        async with asyncio.timeout(10):
            while True:
                output = await self.wire.receive_output(timeout=10)
                if output["type"] == "websocket.close":
                    return int(output.get("code", 1000))


@asynccontextmanager
async def opened(path: str, **options: Any) -> AsyncIterator[Socket]:
    socket = Socket(path, **options)
    try:
        assert await socket.open()
        yield socket
    finally:
        await socket.wire.disconnect(timeout=5)
        await eventually(lambda: not switchboard.here()._readers, what="the reader's end")


async def refused(path: str, **options: Any) -> int | None:
    """The code it is closed with; None when the handshake itself is refused."""
    socket = Socket(path, **options)
    try:
        return await socket.close_code() if await socket.open() else None
    finally:
        await socket.wire.disconnect(timeout=5)


def address(scene: Conversation, **query: Any) -> str:
    pairs = "&".join(f"{name}={value}" for name, value in query.items())
    return f"/ws/sessions/{scene.session_id}" + (f"?{pairs}" if pairs else "")


# Who may open it


async def test_the_owner_with_a_web_session_is_sent_the_session():
    scene = await act(Conversation.start)
    async with opened(address(scene), cookie=await act(cookie_of, scene.user)) as socket:
        assert (await socket.frame("ready"))["head_seq"] == 1
        assert socket.picture.kinds == ["event", "status", "ready"]


async def test_a_ticket_opens_it_with_and_without_an_origin():
    scene = await act(Conversation.start)
    ticket = tickets.issue(user_id=scene.user.pk, session_id=scene.session_id).ticket
    for origin in (None, HERE):
        async with opened(address(scene, ticket=ticket, after=1), origin=origin) as socket:
            await socket.frame("ready")
            assert socket.picture.kinds == ["status", "ready"]


async def test_nobody_and_a_bad_ticket_are_told_to_sign_in():
    scene = await act(Conversation.start)
    other = await act(Conversation.start, user=scene.user)
    cookie = await act(cookie_of, scene.user)
    elsewhere = tickets.issue(user_id=scene.user.pk, session_id=other.session_id).ticket
    assert await refused(address(scene)) == 4401
    assert await refused(address(scene), cookie=b"sessionid=forged") == 4401
    for ticket in ("", "forged", elsewhere):
        assert await refused(address(scene, ticket=ticket), cookie=cookie) == 4401


async def test_an_expired_ticket_is_worth_nothing(monkeypatch: pytest.MonkeyPatch):
    scene = await act(Conversation.start)
    ticket = tickets.issue(user_id=scene.user.pk, session_id=scene.session_id).ticket
    assert tickets.redeem(ticket, session_id=scene.session_id) == Entry(user_id=scene.user.pk)
    monkeypatch.setattr(tickets, "LIFETIME", timedelta(seconds=-1))
    assert tickets.redeem(ticket, session_id=scene.session_id) is None
    assert await refused(address(scene, ticket=ticket)) == 4401


def test_a_ticket_names_its_end():
    issued = tickets.issue(user_id=1, session_id="ses_x")
    assert timedelta(seconds=55) < issued.expires - timezone.now() <= timedelta(seconds=60)


async def test_another_users_session_and_one_that_never_was_look_the_same():
    scene, stranger = await act(Conversation.start), await act(make_user)
    staff = await act(User.objects.create_superuser, "root-user", password="secret")
    for user in (stranger, staff):
        cookie = await act(cookie_of, user)
        assert await refused(address(scene), cookie=cookie) == 4404
        for unknown in ("ses_unknown-session", "%00", "a%20b", "x" * 200):
            assert await refused(f"/ws/sessions/{unknown}", cookie=cookie) == 4404
        ticket = tickets.issue(user_id=user.pk, session_id=scene.session_id).ticket
        assert await refused(address(scene, ticket=ticket), origin=None) == 4404


async def test_a_user_who_was_deactivated_gets_in_by_no_way():
    scene = await act(Conversation.start)
    cookie = await act(cookie_of, scene.user)
    ticket = tickets.issue(user_id=scene.user.pk, session_id=scene.session_id).ticket
    await act(lambda: User.objects.filter(pk=scene.user.pk).update(is_active=False))
    assert await refused(address(scene), cookie=cookie) == 4401
    assert await refused(address(scene, ticket=ticket)) == 4401


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, HOST),
        (b"null", HOST),
        (b"http://evil.example", HOST),
        (b"http://testserver:8001", HOST),
        (b"http://testserver.evil.example", HOST),
        (b"http://evil.example", b"evil.example"),
        (b"ftp://testserver", HOST),
        (b"http://[", HOST),
        (b"", HOST),
        (b"http://sub.trusted.example", HOST),
    ],
)
async def test_a_page_of_another_site_is_refused_before_anything_else(
    origin: bytes | None, host: bytes, settings: Any
):
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.trusted.example"]
    scene = await act(Conversation.start)
    cookie = await act(cookie_of, scene.user)
    assert await refused(address(scene), cookie=cookie, origin=origin, host=host) is None


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (b"http://testserver", HOST),
        (b"https://testserver", HOST),
        (b"http://testserver:80", HOST),
        (b"http://localhost:8000", b"localhost:8000"),
        (b"http://[::1]:8000", b"[::1]:8000"),
        (b"https://chat.trusted.example", b"internal:8000"),
        (b"https://exact.example", b"internal:8000"),
    ],
)
async def test_pages_of_this_site_and_trusted_origins_get_in(origin: bytes, host: bytes, settings: Any):
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.trusted.example", "https://exact.example"]
    scene = await act(Conversation.start)
    cookie = await act(cookie_of, scene.user)
    async with opened(address(scene), cookie=cookie, origin=origin, host=host) as socket:
        await socket.frame("ready")


@pytest.mark.parametrize("after", ["", "-1", "x", "1.5", "9" * 30, "%D9%A3"])
async def test_a_position_that_is_no_number_is_refused(after: str):
    scene = await act(Conversation.start)
    assert await refused(address(scene, after=after), cookie=await act(cookie_of, scene.user)) == 4400


async def test_an_address_that_is_no_socket_is_refused():
    scene = await act(Conversation.start)
    cookie = await act(cookie_of, scene.user)
    for path in ("/ws/", "/ws/sessions/", "/ws/other/x", f"/ws/sessions/{scene.session_id}/more", "/"):
        assert await refused(path, cookie=cookie) is None


# What it answers


@asynccontextmanager
async def conversation() -> AsyncIterator[tuple[Conversation, Socket]]:
    scene = await act(Conversation.start)
    async with opened(address(scene), cookie=await act(cookie_of, scene.user)) as socket:
        await socket.frame("ready")
        yield scene, socket


async def test_a_prompt_is_admitted_and_its_event_follows():
    message = identity.new_message_id()
    async with conversation() as (scene, socket):
        await socket.send({"t": "prompt", "id": message, "text": "Hi", "delivery": "queue"})
        admitted = await socket.frame("admitted")
        assert admitted["prompt"]["id"] == message
        assert admitted["prompt"]["delivery"] == "queue"
        assert admitted["prompt"]["state"] == "pending"
        if socket.picture.seq < 2:
            await socket.frame("event")
        assert socket.picture.seq == 2
        await socket.send({"t": "prompt", "id": message, "text": "Hi", "delivery": "queue"})
        assert (await socket.frame("admitted"))["prompt"] == admitted["prompt"]
        assert await act(lambda: SessionInput.objects.filter(session_id=scene.session_id).count()) == 1


async def test_frames_are_counted_as_requests_are(settings):
    settings.HOLDFAST_USER_RATE = Rate(2, 3600)
    async with conversation() as (scene, socket):
        for _ in range(3):
            message = identity.new_message_id()
            await socket.send({"t": "prompt", "id": message, "text": "Hi"})
        refused = await socket.frame("refused")
        assert (refused["id"], refused["code"]) == (message, "throttled")
        await socket.send({"t": "interrupt"})
        assert "Too many requests" in (await socket.frame("error"))["detail"]
        await socket.send({"t": "sync", "after": 0})
        assert "Too many requests" in (await socket.frame("error"))["detail"]
        assert await act(lambda: SessionInput.objects.filter(session_id=scene.session_id).count()) == 2


async def test_a_prompt_that_is_refused_says_why_with_the_code_of_the_api():
    message = identity.new_message_id()
    async with conversation() as (_, socket):
        await socket.send({"t": "prompt", "id": message, "text": "Hi"})
        await socket.frame("admitted")
        for frame, code in (
            ({"id": message, "text": "Other"}, "prompt_conflict"),
            ({"id": "msg_rec-12345678", "text": "Hi"}, "invalid_id"),
            ({"id": "nonsense", "text": "Hi"}, "invalid_id"),
            ({"id": "msg_1234567\ud800", "text": "Hi"}, "invalid_id"),
            ({"id": identity.new_message_id(), "text": "  \n"}, "empty_prompt"),
            ({"id": identity.new_message_id(), "text": "\x00\ud800"}, "empty_prompt"),
            (
                {"id": identity.new_message_id(), "text": "x" * (MAX_PROMPT_CHARACTERS + 1)},
                "prompt_too_large",
            ),
        ):
            await socket.send({"t": "prompt", **frame})
            refusal = await socket.frame("refused")
            assert (refusal["id"], refusal["code"]) == (frame["id"], code)
            assert refusal["detail"]


async def test_a_sync_is_answered_by_what_is_missing_and_ready():
    async with conversation() as (scene, socket):
        await act(scene.prompt)
        await socket.frame("event")
        socket.picture.restart(after=0)
        await socket.send({"t": "sync", "after": 0})
        assert (await socket.frame("ready"))["head_seq"] == 2
        assert socket.picture.seq == 2


async def test_an_interrupt_asks_the_owner_or_says_that_nothing_ran():
    async with conversation() as (scene, socket):
        await socket.send({"t": "interrupt"})
        assert (await socket.frame("interrupted"))["interrupted"] is False
        await act(scene.acquire)
        await socket.send({"t": "interrupt"})
        assert (await socket.frame("interrupted"))["interrupted"] is True
        row = await act(lambda: Session.objects.get(pk=scene.session_id))
        assert row.interrupt_fence == scene.fence
        assert scene.worker is not None
        await act(scene.worker.stop, now=timezone.now())


@pytest.mark.parametrize(
    "frame",
    [
        "not json",
        "",
        "null",
        "[]",
        "5",
        '"prompt"',
        "{}",
        '{"t": "dance"}',
        '{"t": 5}',
        '{"t": ["prompt"]}',
        '{"t": {"a": 1}}',
        '{"t": "prompt"}',
        '{"t": "prompt", "id": 5, "text": "x"}',
        '{"t": "prompt", "id": "msg_12345678", "text": 5}',
        '{"t": "prompt", "id": "msg_12345678", "text": null}',
        '{"t": "prompt", "id": "msg_12345678", "text": "x", "delivery": "later"}',
        '{"t": "prompt", "id": "msg_12345678", "text": "x", "user": 1}',
        '{"t": "sync"}',
        '{"t": "sync", "after": "1"}',
        '{"t": "sync", "after": -1}',
        '{"t": "sync", "after": 1.5}',
        '{"t": "sync", "after": true}',
        '{"t": "sync", "after": 1e400}',
        '{"t": "sync", "after": 99999999999999999999}',
        '{"t": "interrupt", "resume": "yes"}',
        "[" * 100_000,
        '{"t": ' * 100_000,
        "9" * 10_000,
        '{"t": "admitted"}',
    ],
)
async def test_a_frame_that_cannot_be_understood_gets_an_error_and_does_no_harm(frame: str):
    async with conversation() as (scene, socket):
        if frame:
            await socket.send(frame)
        else:
            await socket.wire.send_input({"type": "websocket.receive", "text": ""})
        assert (await socket.frame("error"))["detail"]
        await socket.send({"t": "sync", "after": 1})
        await socket.frame("ready")
        assert await act(lambda: SessionInput.objects.count()) == 0
        assert await act(scene.head_seq) == 1


async def test_bytes_and_frames_that_are_too_large_get_an_error():
    async with conversation() as (_, socket):
        await socket.wire.send_to(bytes_data=b'{"t": "interrupt"}')
        assert "text" in (await socket.frame("error"))["detail"]
        await socket.send(json.dumps({"t": "prompt", "text": "x" * requests.LARGEST_FRAME}))
        assert "at most" in (await socket.frame("error"))["detail"]


@pytest.mark.parametrize("frame", [{"t": "interrupt"}, {"t": "prompt", "id": "msg_12345678", "text": "Hi"}])
async def test_the_owner_is_checked_on_every_action(frame: dict[str, str]):
    async with conversation() as (scene, socket):
        other = await act(make_user)
        await act(lambda: Session.objects.filter(pk=scene.session_id).update(user=other))
        await socket.send(frame)
        assert await socket.close_code() == 4404
    assert await act(lambda: SessionInput.objects.count()) == 0


async def test_a_user_who_was_deactivated_can_act_no_more():
    async with conversation() as (scene, socket):
        await act(lambda: User.objects.filter(pk=scene.user.pk).update(is_active=False))
        await socket.send({"t": "prompt", "id": identity.new_message_id(), "text": "Hi"})
        assert await socket.close_code() == 4404


async def test_a_deleted_session_closes_its_sockets():
    async with conversation() as (scene, socket):
        await act(sessions.delete, session_id=scene.session_id, now=timezone.now())
        publish.status(scene.session_id)
        assert await socket.close_code() == 4404


async def test_a_database_that_is_away_closes_the_socket_and_the_client_sends_again(
    monkeypatch: pytest.MonkeyPatch,
):
    def away(**arguments: Any) -> None:
        raise DatabaseError("away")

    async with conversation() as (_, socket):
        monkeypatch.setattr(access, "prompt", away)
        await socket.send({"t": "prompt", "id": identity.new_message_id(), "text": "Hi"})
        assert await socket.close_code() == 1011


async def test_a_socket_whose_reader_is_too_slow_is_closed(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    async with conversation() as (scene, socket):
        (reader,) = switchboard.here()._readers[scene.session_id]
        reader._end("slow")  # type: ignore[attr-defined]
        assert await socket.close_code() == 4408


async def test_live_text_reaches_the_socket():
    async with conversation() as (scene, socket):
        await act(scene.start_step)
        part = await act(scene.open_part)
        scene.say(part, "Grüße 👋")
        await socket.frame("delta")
        await act(scene.end_part, part)
        while part.id not in socket.picture.ended:
            await socket.frame("event")
        assert socket.picture.ended[part.id] == "Grüße 👋"
