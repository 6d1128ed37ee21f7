"""Guessing passwords is slow: a name that was tried too often from one address rests, in every process."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.utils import timezone

from sessions_app import figures

RIGHT, WRONG = "a long enough one", "a-guess"


@pytest.fixture(autouse=True)
def _few(settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 3


def attempt(password: str, *, name: str = "ann", address: str = "192.0.2.1", path: str = "/sign-in") -> Any:
    return Client(REMOTE_ADDR=address).post(path, {"username": name, "password": password})


def guess(times: int, **where: str) -> list[int]:
    return [attempt(WRONG, **where).status_code for _ in range(times)]


def test_after_too_many_failures_even_the_right_password_waits(ann: User) -> None:
    assert guess(3) == [200, 200, 429]

    answer = attempt(RIGHT)

    assert answer.status_code == 429
    assert answer["Retry-After"] == "900"
    assert b"15 minutes" in answer.content
    assert "sessionid" not in answer.cookies
    figures.store()
    assert figures.read()["throttled"]["sign_in"] >= 1


@pytest.mark.django_db(transaction=True)
async def test_it_is_the_same_as_the_web_server_runs_it() -> None:
    form = {"username": "nobody", "password": WRONG}
    answers = [await AsyncClient().post("/admin/login/", form) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[-1]["Retry-After"] == "900"
    assert answers[-1]["Cache-Control"] == "no-store"


def test_the_owner_of_the_name_gets_in_from_elsewhere_and_others_from_there(ann: User, bob: User) -> None:
    guess(3)

    assert attempt(RIGHT, address="192.0.2.2").status_code == 302
    assert attempt(RIGHT, name="bob").status_code == 302


def test_the_admins_door_is_the_same_door(ann: User) -> None:
    User.objects.filter(pk=ann.pk).update(is_staff=True)

    assert guess(3, path="/admin/login/")[-1] == 429
    assert attempt(RIGHT).status_code == 429


def test_after_the_pause_one_may_try_again(ann: User) -> None:
    guess(3)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(seconds=901))

    assert attempt(RIGHT).status_code == 302


def test_success_forgets_the_failures(ann: User) -> None:
    guess(2)
    assert attempt(RIGHT).status_code == 302

    assert guess(2) == [200, 200]


def test_no_log_line_and_no_row_holds_what_was_typed_as_password(ann: User, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    guess(3)
    caplog.clear()

    attempt("s3cret-typed")

    assert "s3cret-typed" not in caplog.text
    assert "s3cret-typed" not in str(list(AccessAttempt.objects.values()))
