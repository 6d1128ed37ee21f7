"""The forms of the cards: each decides once and leads back to the chat, also without scripts."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from sessions_app.models import MessagePart, ProviderAttempt
from sessions_app.providers import port, registry
from sessions_app.tools import registry as tools
from sessions_app.tools.declare import tool
from sessions_app.tools.port import Input, Reconciled, ToolContext
from sessions_app.web import cards
from tests.recovery import scenes
from tests.support import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("carla", password="a long enough one")


@pytest.fixture
def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def session_id(user: User) -> str:
    session_id = world.session(user_id=user.pk)
    scenes.say(session_id)
    return session_id


def attempt_form(attempt: str) -> str:
    return reverse("recovery:decide-attempt", args=[attempt])


def call_form(call: str) -> str:
    return reverse("recovery:decide-call", args=[call])


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def test_an_attempt_is_decided_and_the_chat_shown_again(browser: Client, session_id: str) -> None:
    attempt = scenes.unknown_attempt(session_id)

    answered = browser.post(
        attempt_form(attempt), {"action": "retry", "reason": " once\0 more ", "result": ""}
    )

    assert (answered.status_code, answered["Location"]) == (302, f"/s/{session_id}#{attempt}")
    decision = ProviderAttempt.objects.get(pk=attempt).decision
    assert decision is not None
    assert (decision["action"], decision["by"], decision["reason"]) == ("retry", "carla", "once more")
    assert browser.get(answered["Location"]).status_code == 200


def test_a_form_that_is_sent_twice_decides_once_and_tells_who_decided(
    browser: Client, session_id: str
) -> None:
    attempt = scenes.unknown_attempt(session_id)
    browser.post(attempt_form(attempt), {"action": "abandon"})
    before = world.everything_of(session_id)

    again = browser.post(attempt_form(attempt), {"action": "retry"})

    assert again["Location"] == f"/s/{session_id}#{attempt}"
    assert [text.startswith("carla already decided this: abandon") for text in said(again)] == [True]
    assert world.everything_of(session_id) == before


@pytest.mark.parametrize(
    ("action", "result", "kept"),
    [("mark_done", " sent ", "sent"), ("mark_done", "", None), ("mark_not_done", "left over", None)],
)
def test_an_unknown_call_is_marked(
    browser: Client, session_id: str, action: str, result: str, kept: str | None
) -> None:
    call = scenes.unknown_call(session_id)

    answered = browser.post(call_form(call), {"action": action, "result": result})

    assert answered["Location"] == f"/s/{session_id}#{call}"
    decision = MessagePart.objects.get(pk=call).decision
    assert decision is not None
    assert (decision["action"], decision.get("result"), decision.get("reason")) == (action, kept, None)


def test_a_waiting_call_is_answered(browser: Client, session_id: str) -> None:
    call = scenes.waiting_call(session_id)

    browser.post(call_form(call), {"action": "approve"})

    assert MessagePart.objects.get(pk=call).approval == "approved"
    assert world.wakes() == [session_id]


class Keeper:
    """A provider that keeps its responses and has forgotten this one."""

    async def ask(self, response_id: str, *, follow: bool) -> AsyncGenerator[port.Item]:
        for item in list[port.Item]():
            yield item
        raise port.Forgotten("Gone.")

    async def cancel(self, response_id: str) -> None: ...


@pytest.mark.rows_of_its_own
@pytest.mark.rows_of_its_own
def test_a_provider_that_can_be_asked_is_offered_and_asked(
    browser: Client, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "get_provider", lambda name, model: Keeper())
    attempt = scenes.unknown_attempt(session_id)
    assert b"Check with provider" not in browser.get(f"/s/{session_id}").content.partition(b"<template")[0]
    ProviderAttempt.objects.filter(pk=attempt).update(provider_response_id="resp_1")
    assert b"Check with provider" in browser.get(f"/s/{session_id}").content.partition(b"<template")[0]

    answered = browser.post(attempt_form(attempt), {"action": "ask"})

    assert answered["Location"] == f"/s/{session_id}#{attempt}"
    assert said(answered) == [cards.ASKED]
    assert world.row(session_id).inquiry == attempt
    assert ProviderAttempt.objects.get(pk=attempt).decision is None


def test_a_tool_that_tells_decides_without_a_person(
    browser: Client, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(given: Input, context: ToolContext) -> Reconciled:
        return Reconciled(happened="yes", output="Sent.")

    @tool(reconcile=look)
    def send_mail(a: int) -> str:
        """Sends."""
        raise AssertionError("it is asked, never entered")

    monkeypatch.setattr(tools, "local", lambda: {"send_mail": send_mail})
    call = scenes.unknown_call(session_id)

    answered = browser.post(call_form(call), {"action": "ask"})

    assert said(answered) == []
    decision = MessagePart.objects.get(pk=call).decision
    assert decision is not None
    assert decision["by"] == "the tool send_mail"


def test_what_cannot_be_asked_says_so(browser: Client, session_id: str) -> None:
    attempt = scenes.unknown_attempt(session_id)

    answered = browser.post(attempt_form(attempt), {"action": "ask"})

    assert "keeps no responses" in said(answered)[0]


def test_what_is_not_offered_or_not_theirs_is_not_found(browser: Client, session_id: str) -> None:
    attempt, call = scenes.unknown_attempt(session_id), scenes.unknown_call(session_id)
    stranger = Client()
    stranger.force_login(User.objects.create_user("mallory"))
    before = world.everything_of(session_id)

    for client, address, action in (
        (browser, attempt_form(attempt), "approve"),
        (browser, attempt_form(attempt), ""),
        (browser, call_form(call), "retry"),
        (browser, call_form("prt_0000000000000000"), "mark_done"),
        (browser, "/attempts/%00/decide", "abandon"),
        (stranger, attempt_form(attempt), "abandon"),
        (stranger, call_form(call), "mark_done"),
        (stranger, attempt_form(attempt), "ask"),
        (stranger, call_form(call), "ask"),
    ):
        assert client.post(address, {"action": action}).status_code == 404
    assert browser.get(attempt_form(attempt)).status_code == 405
    assert Client().post(attempt_form(attempt), {"action": "abandon"})["Location"].startswith("/sign-in")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="carla"))
    assert strict.post(attempt_form(attempt), {"action": "abandon"}).status_code == 403
    assert world.everything_of(session_id) == before
