"""GET status, POST wait, resume, interrupt, ticket of a session."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from sessions_app.live import tickets
from tests.api.callers import Caller, refused
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def address(session_id: str) -> str:
    return f"/sessions/{session_id}"


def test_status_is_derived_from_what_is_stored(ann: Caller, session_id: str, address: str) -> None:
    idle = ann.get(f"{address}/status").json()
    ann.post(f"{address}/prompts", {"text": "x"})
    ann.post(f"{address}/prompts", {"text": "x", "delivery": "queue"})
    queued = ann.get(f"{address}/status").json()

    assert idle == {
        "state": "idle",
        "session": session_id,
        "head_seq": 1,
        "owner_alive": False,
        "owner_quiet_since": None,
        "pending": {"steer": 0, "queue": 0},
        "paused": False,
        "parked": False,
        "attempt": None,
        "retry": None,
        "unknown": {"attempts": [], "tools": []},
        "waiting": [],
    }
    assert (queued["state"], queued["pending"]) == ("queued", {"steer": 1, "queue": 1})


def test_an_idle_session_is_not_waited_for(ann: Caller, address: str) -> None:
    begin = time.monotonic()

    response = ann.post(f"{address}/wait", {"timeout": 30})

    assert response.json()["state"] == "idle"
    assert time.monotonic() - begin < 10


def test_waiting_ends_at_the_timeout_with_the_status_of_then(
    ann: Caller, session_id: str, address: str
) -> None:
    world.prompt(session_id)

    response = ann.post(f"{address}/wait", {"timeout": 0.3})

    assert (response.status_code, response.json()["state"]) == (200, "queued")


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_when_nothing_runs_any_more(ann: Caller, session_id: str, address: str) -> None:
    world.prompt(session_id)

    with _meanwhile(lambda: Caller(headers=ann.headers).post(f"{address}/interrupt")):
        response = ann.post(f"{address}/wait", {"timeout": 30})

    assert response.json()["state"] == "idle"
    assert response.json()["paused"] is True


@pytest.mark.django_db(transaction=True)
def test_waiting_for_a_session_that_is_deleted_ends(ann: Caller, session_id: str, address: str) -> None:
    world.prompt(session_id)

    with _meanwhile(lambda: Caller(headers=ann.headers).delete(address)):
        response = ann.post(f"{address}/wait", {"timeout": 30})

    refused(response, 404, "session_not_found")


@contextmanager
def _meanwhile(act: Any) -> Iterator[None]:
    """``act`` in another thread, with a connection of its own."""

    def run() -> None:
        act()
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("seconds", [-1, 61, "5", True, None])
def test_a_timeout_that_cannot_be_used_is_refused(ann: Caller, address: str, seconds: Any) -> None:
    refused(ann.post(f"{address}/wait", {"timeout": seconds}), 400, "invalid")


def test_stop_on_an_idle_session_says_that_nothing_ran(ann: Caller, address: str) -> None:
    response = ann.post(f"{address}/interrupt")

    assert response.status_code == 202
    assert response.json()["interrupted"] is False
    assert response.json()["status"]["state"] == "idle"


def test_stop_pauses_what_is_about_to_run_and_resume_lets_it_run(
    ann: Caller, session_id: str, address: str
) -> None:
    world.prompt(session_id)

    stopped = ann.post(f"{address}/interrupt", {})
    resumed = ann.post(f"{address}/resume", {})

    assert stopped.json()["interrupted"] is True
    assert (stopped.json()["status"]["state"], stopped.json()["status"]["paused"]) == ("idle", True)
    assert (resumed.status_code, resumed.json()["resumed"]) == (202, True)
    assert (resumed.json()["status"]["state"], resumed.json()["status"]["paused"]) == ("queued", False)


def test_resume_without_anything_to_do_says_so(ann: Caller, address: str) -> None:
    assert ann.post(f"{address}/resume").json()["resumed"] is False


def test_stop_reaches_the_owner_as_a_durable_request(ann: Caller, address: str, session_id: str) -> None:
    world.prompt(session_id)
    held = world.take(session_id)

    response = ann.post(f"{address}/interrupt", {"resume": True})

    row = world.row(session_id)
    assert response.json()["interrupted"] is True
    assert (row.interrupt_fence, row.interrupt_resume) == (held.fence, True)


@pytest.mark.parametrize(
    ("verb", "body"), [("resume", {"x": 1}), ("interrupt", {"resume": 1}), ("ticket", {"x": 1})]
)
def test_fields_that_cannot_be_used_are_refused(ann: Caller, address: str, verb: str, body: Any) -> None:
    refused(ann.post(f"{address}/{verb}", body), 400, "invalid")


def test_a_ticket_opens_this_session_for_this_user(ann: Caller, address: str, session_id: str) -> None:
    response = ann.post(f"{address}/ticket")

    assert response.status_code == 201
    assert response.json()["expires"].endswith("Z")
    entry = tickets.redeem(response.json()["ticket"], session_id=session_id)
    assert entry is not None
    assert (entry.user_id, entry.token_id is not None) == (ann.user_id, True)
    assert tickets.redeem(response.json()["ticket"], session_id="ses_other") is None
