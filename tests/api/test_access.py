"""Every address refuses the same people in the same order: nobody 401, others 404, then the rest."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from sessions_app import access
from sessions_app.models import ApiToken
from tests.api import callers
from tests.api.callers import Caller, refused
from tests.support import world

pytestmark = pytest.mark.django_db

OF_A_SESSION = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("GET", "/prompts"),
    ("POST", "/prompts"),
    ("PATCH", f"/prompts/{callers.UNKNOWN_PROMPT}"),
    ("DELETE", f"/prompts/{callers.UNKNOWN_PROMPT}"),
    ("GET", "/messages"),
    ("GET", "/events"),
    ("GET", "/stream"),
    ("GET", "/status"),
    ("POST", "/wait"),
    ("POST", "/resume"),
    ("POST", "/interrupt"),
    ("POST", "/ticket"),
    ("POST", "/compact"),
    ("POST", "/revert"),
    ("DELETE", "/revert"),
    ("GET", "/export"),
]
OF_THE_SITE = [
    ("GET", "/me"),
    ("GET", "/sessions"),
    ("POST", "/sessions"),
    ("GET", "/attempts"),
    ("GET", "/attempts/att_0000000000000000"),
    ("GET", "/tool-calls"),
    ("GET", "/tool-calls/prt_0000000000000000"),
    ("GET", "/tool-calls/prt_0000000000000000/output"),
    ("GET", "/recovery/claims"),
    ("POST", "/attempts/att_0000000000000000/decide"),
    ("POST", "/tool-calls/prt_0000000000000000/decide"),
    ("GET", "/models"),
    ("GET", "/agents"),
    ("GET", "/nowhere"),
]


@pytest.mark.parametrize(("method", "path"), OF_A_SESSION)
def test_another_user_is_told_that_the_session_does_not_exist(
    bob: Caller, session_id: str, method: str, path: str
) -> None:
    before = world.everything_of(session_id)

    theirs = refused(bob.call(method, f"/sessions/{session_id}{path}"), 404, "session_not_found")
    unknown = refused(
        bob.call(method, f"/sessions/{callers.UNKNOWN_SESSION}{path}"), 404, "session_not_found"
    )

    assert str(theirs).replace(session_id, "") == str(unknown).replace(callers.UNKNOWN_SESSION, "")
    assert world.everything_of(session_id) == before


@pytest.mark.parametrize(("method", "path"), OF_A_SESSION)
def test_another_user_learns_nothing_from_bad_requests(
    bob: Caller, session_id: str, method: str, path: str
) -> None:
    address = f"/sessions/{session_id}{path}"

    refused(bob.send(method, address, b"{{{", "text/plain"), 404, "session_not_found")
    refused(bob.call("PUT", address, {}), 404, "session_not_found")
    refused(bob.call(method, f"{address}?unknown=1", {"unknown": 1}), 404, "session_not_found")
    refused(bob.call(method, address, Accept="text/html"), 404, "session_not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    OF_THE_SITE + [(method, f"/sessions/{callers.UNKNOWN_SESSION}{path}") for method, path in OF_A_SESSION],
)
def test_nobody_is_asked_who_they_are(nobody: Caller, method: str, path: str) -> None:
    response = nobody.call(method, path)

    refused(response, 401, "not_authenticated")
    assert response.headers["WWW-Authenticate"].startswith("Token")


@pytest.mark.parametrize(
    "value",
    [
        "Token wrong",
        "Token",
        "Token ",
        "Token a b c",
        "Bearer x",
        "Basic YTpi",
        "Token " + "x" * 5000,
        "\xff",
    ],
)
def test_a_bad_token_is_refused(db: None, value: str) -> None:
    response = Caller(headers={"Authorization": value}).get("/me")

    refused(response, 401, "not_authenticated")


def test_a_bad_token_is_refused_even_beside_a_web_session(ann: Caller) -> None:
    client = Client()
    client.force_login(get_user_model().objects.get(pk=ann.user_id))

    refused(
        Caller(client=client, headers={"Authorization": "Token wrong"}).get("/me"), 401, "not_authenticated"
    )
    refused(Caller(client=client, headers={"Authorization": "Bearer x"}).get("/me"), 401, "not_authenticated")


def test_a_revoked_token_is_refused(ann: Caller) -> None:
    token = ApiToken.objects.get(user_id=ann.user_id)
    assert ann.get("/me").status_code == 200

    assert access.revoke_token(token_id=token.pk, now=timezone.now())

    refused(ann.get("/me"), 401, "not_authenticated")
    assert not access.revoke_token(token_id=token.pk, now=timezone.now())


def test_the_token_of_an_inactive_user_is_refused(ann: Caller) -> None:
    get_user_model().objects.filter(pk=ann.user_id).update(is_active=False)

    refused(ann.get("/me"), 401, "not_authenticated")


def test_a_token_is_stored_as_a_digest_only(ann: Caller) -> None:
    secret = ann.headers["Authorization"].removeprefix("Token ")

    assert secret not in str(ApiToken.objects.values())
    assert len(ApiToken.objects.get().digest) == 64


def test_a_web_session_reads_without_and_writes_with_a_csrf_token(ann: Caller) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.get(pk=ann.user_id))
    browser = Caller(client=client)

    assert browser.get("/me").json()["username"] == "ann"
    refused(browser.post("/sessions", {}), 403, "forbidden")
    client.cookies["csrftoken"] = "a" * 32
    assert browser.call("POST", "/sessions", {}, **{"X-CSRFToken": "a" * 32}).status_code == 201


def test_me_says_who_asks(ann: Caller) -> None:
    assert ann.get("/me").json() == {"username": "ann", "is_staff": False}

    get_user_model().objects.filter(pk=ann.user_id).update(is_staff=True)

    assert ann.get("/me").json() == {"username": "ann", "is_staff": True}
