"""The link that creates the first administrator."""

import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from sessions_app.models import SetupLink
from sessions_app.web import first_run

ACCOUNT = {"username": "ann", "password1": "correct horse battery", "password2": "correct horse battery"}


def _link() -> str:
    link = first_run.issue_link("http://here:8000/")
    assert link is not None
    return link.removeprefix("http://here:8000")


def test_the_link_creates_the_administrator_and_signs_in(db: None) -> None:
    client = Client()

    answer = client.post(_link(), ACCOUNT)

    assert (answer.status_code, answer["Location"]) == (302, "/")
    user = User.objects.get()
    assert user.is_superuser
    assert user.is_staff
    assert user.check_password(ACCOUNT["password1"])
    assert client.get("/").status_code == 200
    assert client.get("/").context["user"] == user


def test_the_token_is_stored_as_a_digest_only(db: None) -> None:
    token = _link().rpartition("/")[2]

    stored = SetupLink.objects.get().digest

    assert len(stored) == 64
    assert token not in stored


def test_no_link_is_issued_once_an_account_exists(ann: User) -> None:
    assert first_run.issue_link("http://here") is None
    assert not SetupLink.objects.exists()


def test_a_new_link_replaces_the_older_ones(db: None) -> None:
    older, newer = _link(), _link()

    assert Client().get(older).status_code == 404
    assert Client().get(newer).status_code == 200


def test_a_used_link_says_so_and_creates_nothing(db: None) -> None:
    link = _link()
    Client().post(link, ACCOUNT)

    answer = Client().post(link, ACCOUNT | {"username": "eve"})

    assert answer.status_code == 410
    assert b"createsuperuser" in answer.content
    assert User.objects.count() == 1


def test_an_unknown_link_says_where_to_find_the_right_one(db: None) -> None:
    answer = Client().get("/first-run/" + "x" * 43)

    assert answer.status_code == 404
    assert b"manage.py up" in answer.content
    assert b"createsuperuser" in answer.content


def test_an_unused_link_is_closed_by_an_account_made_elsewhere(db: None) -> None:
    link = _link()
    User.objects.create_superuser("root", password="made in a terminal")

    assert Client().get(link).status_code == 410
    assert Client().post(link, ACCOUNT).status_code == 410
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    "broken",
    [
        {"username": ""},
        {"username": "a b"},
        {"password2": "another one"},
        {"password1": "12345678", "password2": "12345678"},
        {"password1": "short", "password2": "short"},
    ],
)
def test_a_form_that_is_not_valid_leaves_the_link_usable(db: None, broken: dict[str, str]) -> None:
    link = _link()

    refused = Client().post(link, ACCOUNT | broken)

    assert refused.status_code == 200
    assert b'class="error"' in refused.content
    assert not User.objects.exists()
    assert Client().post(link, ACCOUNT).status_code == 302


def test_the_form_needs_its_csrf_token(db: None) -> None:
    assert Client(enforce_csrf_checks=True).post(_link(), ACCOUNT).status_code == 403
    assert not User.objects.exists()


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(5))
def test_of_many_browsers_with_one_link_one_wins(round_: int) -> None:
    link = _link()
    statuses: list[int] = []

    def open_link(name: str) -> Callable[[], None]:
        return lambda: statuses.append(Client().post(link, ACCOUNT | {"username": name}).status_code)

    _at_once([open_link(f"ann{number}") for number in range(6)])

    assert sorted(statuses) == [302] + 5 * [410]
    assert User.objects.count() == 1


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(5))
def test_two_links_of_two_servers_make_one_account(round_: int) -> None:
    one = _link()
    spare = SetupLink.objects.get()
    two = _link()
    spare.save(force_insert=True)
    statuses: list[int] = []

    _at_once(
        [
            lambda: statuses.append(Client().post(one, ACCOUNT | {"username": "one"}).status_code),
            lambda: statuses.append(Client().post(two, ACCOUNT | {"username": "two"}).status_code),
        ]
    )

    assert sorted(statuses) == [302, 410]
    assert User.objects.count() == 1


def _at_once(acts: list[Callable[[], None]]) -> None:
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], None]) -> None:
        start.wait()
        try:
            act()
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
