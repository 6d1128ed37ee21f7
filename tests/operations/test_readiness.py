"""/readyz says what an admission would lack."""

import asyncio

import pytest
from django.db import OperationalError
from django.test import AsyncClient

from sessions_app.live import health, wakes
from sessions_app.operations import readiness

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ALL_OK = {"database": "ok", "queue": "ok", "channel_layer": "ok", "migrations": "ok"}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not what these tests are about."""
    monkeypatch.setattr(readiness, "WITHIN_SECONDS", 60)


async def ask() -> tuple[int, dict[str, str]]:
    response = await AsyncClient().get("/readyz")
    assert "no-store" in response["Cache-Control"]
    return response.status_code, response.json()


async def test_everything_that_is_there_is_named_and_the_process_is_ready() -> None:
    assert await ask() == (200, {"status": "ready", **ALL_OK})


async def test_a_database_that_does_not_answer_is_named_and_nothing_behind_it_is_guessed(monkeypatch) -> None:
    def refuse() -> None:
        raise OperationalError("no route to db.internal with password=hunter2")

    monkeypatch.setattr(readiness, "_ask", refuse)

    status, found = await ask()

    assert (status, found["database"]) == (503, "failed")
    assert (found["queue"], found["migrations"]) == ("not checked", "not checked")
    assert "hunter2" not in str(found)


async def test_a_queue_without_its_table_is_named(monkeypatch) -> None:
    def refuse() -> int:
        raise OperationalError("no such table: django_q_ormq")

    monkeypatch.setattr(wakes, "depth", refuse)

    assert await ask() == (503, {"status": "not ready", **ALL_OK, "queue": "failed"})


async def test_a_layer_that_carries_nothing_is_named(monkeypatch) -> None:
    async def silent() -> bool:
        return False

    monkeypatch.setattr(health, "layer_answers", silent)

    assert await ask() == (503, {"status": "not ready", **ALL_OK, "channel_layer": "failed"})


async def test_migrations_that_are_missing_are_named(monkeypatch) -> None:
    monkeypatch.setattr(readiness, "missing_migrations", lambda: 2)

    assert await ask() == (503, {"status": "not ready", **ALL_OK, "migrations": "missing"})


async def test_a_database_that_hangs_is_one_waiting_thread_however_many_ask(monkeypatch) -> None:
    looks = 0
    hung = asyncio.Event()

    async def hang() -> readiness.Readiness:
        nonlocal looks
        looks += 1
        await hung.wait()
        return readiness.Readiness(parts={})

    monkeypatch.setattr(readiness, "_look", hang)
    monkeypatch.setattr(readiness, "WITHIN_SECONDS", 0.01)

    answers = await asyncio.gather(*(ask() for _ in range(5)))

    hung.set()
    assert {status for status, _ in answers} == {503}
    assert looks == 1
