"""GET /attempts and /attempts/{id}."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schema.attempts import AttemptError
from schema.events import AttemptDispatched, AttemptPrepared, AttemptSettled, AttemptUnknown, StepStarted
from sessions_app import identity, log
from sessions_app.models import ProviderAttempt
from tests.api.callers import UNKNOWN_ATTEMPT, Caller, pages_of, refused
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def attempt(session_id: str, *, seconds: float = 0, end: str = "") -> str:
    """An attempt that was dispatched, and then ``completed``, ``unknown``, or nothing yet."""
    made, message = identity.new_attempt_id(), identity.new_message_id()
    with log.session_transaction(session_id, now=world.after(seconds)) as tx:
        tx.append(StepStarted(message=message, agent="default", model="demo:scripted", step=1))
        tx.append(
            AttemptPrepared(
                attempt=made,
                message=message,
                purpose="step",
                ordinal=1,
                provider="demo",
                model="scripted",
                request_digest="d" * 64,
            )
        )
        tx.append(AttemptDispatched(attempt=made))
        if end == "completed":
            tx.append(AttemptSettled(attempt=made, outcome="completed", finish="stop", may_be_billed=True))
        if end == "unknown":
            error = AttemptError(error_class="ambiguous", reason="cut", message="The line was cut.")
            tx.append(AttemptUnknown(attempt=made, error=error))
    return made


def ids(caller: Caller, query: str = "") -> list[str]:
    return [row["id"] for row in caller.get(f"/attempts{query}").json()["results"]]


def test_own_attempts_are_listed_newest_first(ann: Caller, bob: Caller, session_id: str) -> None:
    first, second = (attempt(session_id, seconds=number) for number in range(2))
    theirs = world.session(user_id=bob.user_id)
    attempt(theirs)

    assert ids(ann) == [second, first]
    assert ids(ann, f"?session={session_id}") == [second, first]
    refused(ann.get(f"/attempts?session={theirs}"), 404, "session_not_found")


def test_attempts_are_filtered_by_state_and_by_what_needs_a_decision(ann: Caller, session_id: str) -> None:
    running = attempt(session_id)
    done = attempt(session_id, seconds=1, end="completed")
    unknown = attempt(session_id, seconds=2, end="unknown")

    assert ids(ann, "?state=dispatched") == [running]
    assert ids(ann, "?state=settled") == [done]
    assert ids(ann, "?needs_decision=true") == [unknown]
    assert ids(ann, "?needs_decision=false") == [done, running]
    refused(ann.get("/attempts?state=lost"), 400, "invalid")


def test_pages_of_attempts_of_one_moment_give_each_once(ann: Caller, session_id: str) -> None:
    made = {attempt(session_id) for _ in range(5)}

    pages = pages_of(ann, "/attempts", limit=2)

    assert [len(page) for page in pages] == [2, 2, 1]
    assert {row["id"] for page in pages for row in page} == made


def test_an_attempt_is_told_with_its_facts_in_order(ann: Caller, session_id: str) -> None:
    found = ann.get(f"/attempts/{attempt(session_id, end='unknown')}").json()

    assert [fact["fact"] for fact in found["facts"]] == ["prepared", "dispatched", "unknown"]
    assert (found["state"], found["outcome"], found["error_class"]) == ("unknown", None, "ambiguous")
    assert (found["session"], found["provider"], found["model"]) == (session_id, "demo", "scripted")
    assert found["decision"] is None
    assert all(fact["at"].endswith("Z") for fact in found["facts"])


def test_the_attempt_of_another_user_does_not_exist(ann: Caller, bob: Caller, session_id: str) -> None:
    made = attempt(session_id)

    refused(bob.get(f"/attempts/{made}"), 404, "attempt_not_found")
    refused(bob.call("PUT", f"/attempts/{made}"), 404, "attempt_not_found")
    refused(ann.get(f"/attempts/{UNKNOWN_ATTEMPT}"), 404, "attempt_not_found")
    refused(ann.get("/attempts/nonsense"), 404, "attempt_not_found")


@pytest.mark.rows_of_its_own
@pytest.mark.rows_of_its_own
def test_of_many_unknown_attempts_each_provider_is_looked_up_once(ann: Caller, session_id: str) -> None:
    def statements() -> int:
        ProviderAttempt.objects.update(provider="ours", provider_response_id="resp_1")
        with CaptureQueriesContext(connection) as captured:
            assert ann.get("/attempts").status_code == 200
        return len(captured)

    attempt(session_id, end="unknown")
    few = statements()
    for _ in range(10):
        attempt(session_id, end="unknown")

    assert statements() == few
