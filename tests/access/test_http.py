"""The API by token and by web session, and the pages: each visitor gets what is theirs, and nothing else moves."""

import json
from typing import Any

import pytest
from django.test import Client

from sessions_app.models import Session
from tests.access import people, routes
from tests.access.people import SECRET, STRANGERS, VISITORS, Belongings, People
from tests.access.routes import Route

pytestmark = pytest.mark.django_db

FOREIGN = "https://elsewhere.example"


def send(client: Client, route: Route, anns: Belongings, **headers: str) -> Any:
    """As a program would the API, as a form would a page."""
    address = anns.fill(route.address)
    if not route.pattern.startswith(routes.API):
        return client.generic(route.method, address, _form(route.body), _FORM, headers=headers)
    data = json.dumps(route.body) if route.body else ""
    return client.generic(route.method, address, data, "application/json", headers=headers)


_FORM = "application/x-www-form-urlencoded"


def _form(body: dict[str, Any]) -> str:
    return "&".join(f"{name}={value}" for name, value in body.items())


def allowed(route: Route, name: str) -> bool:
    return {
        "public": True,
        "each": name != "anonymous",
        "own": name == "owner",
        "staff": name in ("staff", "administrator"),
    }[route.kind]


def content_of(answer: Any) -> bytes:
    """Without waiting for a stream that never ends."""
    return b"" if answer.streaming else bytes(answer.content)


def tell_nothing(answer: Any, route: Route, anns: Belongings) -> None:
    """Neither what Ann wrote nor, unless it was asked about, that her session exists."""
    told = content_of(answer)
    assert SECRET.encode() not in told
    assert route.kind != "each" or anns.session_id.encode() not in told


def ids(route: Route) -> str:
    return str(route)


def test_every_route_is_named_here() -> None:
    named = {
        *(route.pattern for route in (*routes.OF_THE_API, *routes.OF_THE_PAGES, *routes.FOR_EVERYBODY)),
        *routes.OPERATORS_ONLY,
    }

    assert {pattern for pattern in routes.all_patterns() if not pattern.startswith(routes.ADMIN)} == named


@pytest.mark.parametrize("route", routes.OF_THE_API, ids=ids)
@pytest.mark.parametrize("door", ["token", "browser"])
def test_the_api_is_each_users_own(visitors: People, anns: Belongings, route: Route, door: str) -> None:
    before = people.all_of_it(anns)
    for name in sorted(VISITORS, key=lambda name: name == "owner"):
        client = visitors.with_token(name) if door == "token" else visitors.with_browser(name, csrf=True)

        answer = send(client, route, anns)

        refused = 401 if name == "anonymous" else 403 if route.kind == "staff" else 404
        assert answer.status_code == (route.status if allowed(route, name) else refused), (
            name,
            answer.content,
        )
        if name != "owner":
            tell_nothing(answer, route, anns)
            assert people.all_of_it(anns) == before, name


@pytest.mark.parametrize("route", [route for route in routes.OF_THE_API if route.method != "GET"], ids=ids)
def test_a_browser_changes_nothing_over_the_api_without_its_token_or_from_elsewhere(
    visitors: People, anns: Belongings, route: Route
) -> None:
    before = people.all_of_it(anns)
    for name in people.SIGNED_IN:
        bare = visitors.with_browser(name)
        sent_from_elsewhere = visitors.with_browser(name, csrf=True)

        assert send(bare, route, anns).status_code == 403
        assert send(sent_from_elsewhere, route, anns, Origin=FOREIGN).status_code == 403
    assert people.all_of_it(anns) == before


@pytest.mark.parametrize("route", routes.OF_THE_PAGES, ids=ids)
def test_pages_are_each_users_own(visitors: People, anns: Belongings, route: Route) -> None:
    before = people.all_of_it(anns)
    for name in ("anonymous", *STRANGERS, "owner"):
        answer = send(visitors.with_browser(name, csrf=True), route, anns)

        if name == "anonymous":
            assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/sign-in")
        else:
            expected = route.status if allowed(route, name) else 404
            assert answer.status_code == expected, (name, answer.status_code)
        if name != "owner":
            tell_nothing(answer, route, anns)
            assert people.all_of_it(anns) == before, name


@pytest.mark.parametrize(
    "route",
    [route for route in (*routes.OF_THE_PAGES, *routes.FOR_EVERYBODY) if route.method == "POST"],
    ids=ids,
)
def test_a_form_changes_nothing_without_its_token_or_from_elsewhere(
    visitors: People, anns: Belongings, route: Route
) -> None:
    before, sessions = people.all_of_it(anns), Session.objects.count()
    for name in VISITORS:
        assert send(visitors.with_browser(name), route, anns).status_code == 403
        elsewhere = visitors.with_browser(name, csrf=True)
        assert send(elsewhere, route, anns, Origin=FOREIGN).status_code == 403
    assert people.all_of_it(anns) == before
    assert Session.objects.count() == sessions


@pytest.mark.parametrize("route", routes.FOR_EVERYBODY, ids=ids)
def test_some_pages_are_for_everybody(visitors: People, anns: Belongings, route: Route) -> None:
    for name in VISITORS:
        answer = send(visitors.with_browser(name, csrf=True), route, anns)

        sent_home = route.pattern == "sign-in" and name != "anonymous"
        assert answer.status_code == (302 if sent_home else route.status), name
        assert SECRET.encode() not in content_of(answer)


def test_a_token_opens_no_page(visitors: People, anns: Belongings) -> None:
    for route in routes.OF_THE_PAGES:
        answer = send(visitors.with_token("owner"), route, anns)

        assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/sign-in"), str(route)
