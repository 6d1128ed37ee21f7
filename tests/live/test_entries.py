"""Who signs out, is deactivated or has a token revoked is shown nothing more; others read on."""

import asyncio

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app import access
from sessions_app.live import entries, tickets
from sessions_app.live.entries import Entry
from tests.live.conftest import act
from tests.live.scene import Conversation, make_user
from tests.live.test_consumer import Socket

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("layer")]


class Browser:
    """Signed in, with one open socket."""

    def __init__(self, user: User) -> None:
        self.client = Client()
        self.client.force_login(user)

    @property
    def session_key(self) -> str:
        return self.client.cookies[django_settings.SESSION_COOKIE_NAME].value

    async def open(self, scene: Conversation) -> Socket:
        cookie = f"{django_settings.SESSION_COOKIE_NAME}={self.session_key}".encode()
        self.socket = Socket(f"/ws/sessions/{scene.session_id}", cookie=cookie)
        assert await self.socket.open()
        await self.socket.frame("ready")
        return self.socket


async def two_browsers() -> tuple[Conversation, Browser, Browser]:
    scene = await act(Conversation.start)
    browsers = [await act(lambda: Browser(scene.user)) for _ in range(2)]
    for browser in browsers:
        await browser.open(scene)
    return scene, browsers[0], browsers[1]


async def still_reads(browser: Browser, scene: Conversation) -> bool:
    await act(scene.prompt)
    return bool(await browser.socket.frame("event"))


async def test_signing_out_closes_the_sockets_of_that_browser_and_no_others() -> None:
    scene, leaving, staying = await two_browsers()

    await act(lambda: leaving.client.post("/sign-out"))

    assert await leaving.socket.close_code() == 4401
    assert await still_reads(staying, scene)
    await staying.socket.wire.disconnect()


async def test_signing_out_of_the_admin_is_signing_out() -> None:
    scene = await act(Conversation.start)
    scene.user.is_staff = True
    await act(scene.user.save)
    browser = await act(lambda: Browser(scene.user))
    await browser.open(scene)

    await act(lambda: browser.client.post("/admin/logout/"))

    assert await browser.socket.close_code() == 4401


async def test_a_changed_password_closes_the_sockets_of_all_browsers_which_may_try_again() -> None:
    scene, first, second = await two_browsers()

    def change() -> None:
        scene.user.set_password("another long enough one")
        scene.user.save()

    await act(change)

    assert [await each.socket.close_code() for each in (first, second)] == [1012, 1012]


async def test_whoever_is_deactivated_is_shown_nothing_more() -> None:
    scene, first, second = await two_browsers()

    def deactivate() -> None:
        scene.user.is_active = False
        scene.user.save()

    await act(deactivate)

    assert [await each.socket.close_code() for each in (first, second)] == [1012, 1012]


async def test_a_change_that_takes_nothing_away_closes_nothing() -> None:
    scene, first, second = await two_browsers()

    await act(scene.user.save)

    assert await still_reads(first, scene)
    for browser in (first, second):
        await browser.socket.wire.disconnect()


async def test_a_telling_that_was_lost_is_made_up_for_by_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(entries, "signed_out", lambda **_: None)
    _, leaving, staying = await two_browsers()

    await act(lambda: leaving.client.post("/sign-out"))

    assert await leaving.socket.close_code() == 1012
    await staying.socket.wire.disconnect()


@pytest.mark.both_databases
async def test_an_entry_holds_as_long_as_what_it_was_made_with() -> None:
    def story() -> list[bool]:
        user = make_user()
        made = access.create_token(user_id=user.pk, name="", now=timezone.now())
        browser = Browser(user)
        by_token = Entry(user_id=user.pk, token_id=made.token.pk)
        by_web = Entry(user_id=user.pk, session_key=browser.session_key)
        held = [entries.holds(by_token), entries.holds(by_web), entries.holds(Entry(user_id=user.pk))]
        access.revoke_token(token_id=made.token.pk, now=timezone.now())
        browser.client.logout()
        return [*held, entries.holds(by_token), entries.holds(by_web)]

    assert await act(story) == [True, True, True, False, False]


async def test_a_ticket_is_good_as_long_as_the_token_that_asked_for_it() -> None:
    scene = await act(Conversation.start)
    made = await act(lambda: access.create_token(user_id=scene.user.pk, name="", now=timezone.now()))
    ticket = tickets.issue(user_id=scene.user.pk, session_id=scene.session_id, token_id=made.token.pk).ticket
    address = f"/ws/sessions/{scene.session_id}?ticket={ticket}"
    socket = Socket(address, origin=None)
    assert await socket.open()
    await socket.frame("ready")

    await act(lambda: access.revoke_token(token_id=made.token.pk, now=timezone.now()))

    late = Socket(address, origin=None)
    assert await socket.close_code() == 1012
    assert await late.open()
    assert await late.close_code() == 4401


async def test_a_revoked_token_ends_what_it_opened() -> None:
    left: asyncio.Queue[str] = asyncio.Queue()
    scene, *browsers = await two_browsers()
    made = await act(lambda: access.create_token(user_id=scene.user.pk, name="", now=timezone.now()))
    async with entries.watched(Entry(user_id=scene.user.pk, token_id=made.token.pk), left.put_nowait):
        await act(lambda: access.revoke_token(token_id=made.token.pk, now=timezone.now()))
        async with asyncio.timeout(5):
            assert await left.get() == "changed"

    for browser in browsers:
        await browser.socket.wire.disconnect()
