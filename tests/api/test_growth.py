"""Lists over all sessions of a user are read in the order of an index, a page at a time, whatever there is."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.callers import Caller, pages_of
from tests.api.test_attempts import attempt
from tests.support import world
from tests.web.conversations import Conversation

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LISTS = ["/attempts", "/tool-calls"]


def fill(user_id: int) -> None:
    """Some sessions, each with attempts and calls."""
    for _ in range(2):
        session_id = world.session(user_id=user_id)
        for _ in range(2):
            attempt(session_id, end="completed")
        talk = Conversation(session_id=session_id)
        answer = talk.begin_answer()
        for index in range(2):
            talk.begin_call(answer, "calculator", index=index)
        talk.begin_text(answer, index=2)


def plan_of(act: Any, order: str) -> str:
    """How the database answers the list's own query, as if tables were large."""
    with CaptureQueriesContext(connection) as asked:
        act()
    (query,) = [each["sql"] for each in asked.captured_queries if order in each["sql"]]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        # The text of a query has its values in it: nothing is left to be filled in.
        cursor.execute(("EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN ") + query)
        return "\n".join(str(row) for row in cursor.fetchall())


@pytest.mark.parametrize("path", LISTS)
def test_a_list_of_all_that_is_a_users_sorts_nothing(ann: Caller, path: str) -> None:
    fill(ann.user_id)
    cursor = ann.get(f"{path}?limit=2").json()["next"]

    for query in (
        "?limit=2",
        f"?limit=2&cursor={cursor}",
        "?state=settled" if path == "/attempts" else "?limit=1",
    ):
        plan = plan_of(lambda query=query: ann.get(path + query), "ORDER BY")

        assert "_of_user" in plan, plan
        assert "TEMP B-TREE" not in plan, plan
        assert "Sort" not in plan, plan


@pytest.mark.parametrize("path", LISTS)
def test_what_needs_a_decision_is_found_among_any_number_of_others(ann: Caller, path: str) -> None:
    fill(ann.user_id)

    plan = plan_of(lambda: ann.get(f"{path}?needs_decision=true"), "ORDER BY")

    if connection.vendor == "sqlite":
        assert "undecided_of_user" in plan, plan
    assert "TEMP B-TREE" not in plan, plan
    assert "Sort" not in plan, plan


@pytest.mark.parametrize("path", LISTS)
def test_pages_give_each_once_and_only_what_is_ones_own(ann: Caller, bob: Caller, path: str) -> None:
    fill(ann.user_id)
    fill(bob.user_id)

    pages = [[row["id"] for row in page] for page in pages_of(ann, path, limit=3)]

    assert [len(page) for page in pages] == [3, 1]
    assert len({each for page in pages for each in page}) == 4
    assert pages[0] == [row["id"] for row in ann.get(f"{path}?limit=3").json()["results"]]
