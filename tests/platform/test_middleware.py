"""The middleware does what Django's does, and only the steps that need a thread use one."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path

from config import middleware


async def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


def who(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.user.get_username())


def remember(request: HttpRequest) -> HttpResponse:
    request.session["seen"] = request.session.get("seen", 0) + 1
    messages.info(request, "noted")
    return HttpResponse(str(request.session["seen"]))


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponse(status=404)


urlpatterns = [path("plain", plain), path("who", who), path("remember", remember)]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@pytest.mark.parametrize(("address", "steps"), [("/plain", 0), ("/remember", 2)])
async def test_only_a_step_that_stores_something_goes_to_a_thread(monkeypatch, address, steps) -> None:
    in_threads: list[str] = []

    def noted(step: Callable[..., Any], **options: Any) -> Any:
        in_threads.append(step.__name__)
        return sync_to_async(step, **options)

    monkeypatch.setattr(middleware, "sync_to_async", noted)

    assert (await AsyncClient().get(address)).status_code == 200

    assert in_threads == ["process_response"] * steps, "one for the messages, one for the session"


async def test_the_headers_that_protect_a_page_are_there() -> None:
    answer = await AsyncClient().get("/plain")

    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


async def test_the_signed_in_user_is_known_in_the_view() -> None:
    user = await sync_to_async(User.objects.create_user)("ann")
    client = AsyncClient()
    await client.aforce_login(user)

    assert (await client.get("/who")).content == b"ann"


async def test_what_a_view_puts_into_the_session_is_stored() -> None:
    client = AsyncClient()

    answers = [(await client.get("/remember")).content for _ in range(3)]

    assert answers == [b"1", b"2", b"3"]
    assert "messages" in client.cookies


@pytest.mark.parametrize("path", ["/plain", "/who"])
async def test_a_post_without_csrf_token_is_refused(path) -> None:
    assert (await AsyncClient(enforce_csrf_checks=True).post(path)).status_code == 403


async def test_a_host_that_is_not_allowed_is_refused() -> None:
    assert (await AsyncClient().get("/plain", headers={"host": "evil.example"})).status_code == 400


async def test_a_static_file_is_served_with_its_type_and_not_again_while_it_is_the_same() -> None:
    client = AsyncClient()

    first = await client.get("/static/admin/css/base.css")
    again = await client.get("/static/admin/css/base.css", headers={"if-none-match": first["ETag"]})

    assert (first.status_code, again.status_code) == (200, 304)
    assert first["Content-Type"].startswith("text/css")
    assert int(first["Content-Length"]) == len(first.content) > 0
    assert (await client.get("/static/admin/css/none.css")).status_code == 404
    assert (await client.post("/static/admin/css/base.css")).status_code == 405


async def test_a_static_file_that_changes_is_read_again_while_debugging() -> None:
    with override_settings(DEBUG=True):
        assert (await AsyncClient().get("/static/admin/css/base.css")).status_code == 200


def test_the_same_chain_works_without_an_event_loop() -> None:
    client = Client()

    assert client.get("/who").content == b""
    assert [client.get("/remember").content for _ in range(2)] == [b"1", b"2"]
    assert client.get("/static/admin/css/base.css").status_code == 200
    assert Client(enforce_csrf_checks=True).post("/who").status_code == 403


@pytest.mark.urls("config.urls")
@pytest.mark.parametrize("address", middleware.INSTRUMENTS)
async def test_instruments_may_ask_by_any_name_and_others_may_not(address: str) -> None:
    assert (await AsyncClient().get(address, headers={"host": "10.1.2.3"})).status_code != 400
    assert (await AsyncClient().get("/sign-in", headers={"host": "10.1.2.3"})).status_code == 400


@pytest.mark.urls("config.urls")
async def test_instruments_are_not_sent_on_to_https() -> None:
    with override_settings(SECURE_SSL_REDIRECT=True):
        assert (await AsyncClient().get("/healthz")).status_code == 200
        assert (await AsyncClient().get("/sign-in")).status_code == 301
