"""GET /recovery/claims."""

import pytest
from django.contrib.auth.models import User

from recovery import service
from recovery.models import RecoveryClaim
from tests.api.callers import Caller, pages_of, refused
from tests.recovery import scenes
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def claimed(user_id: int, *, seconds: float = 0) -> RecoveryClaim:
    """A session whose worker died mid-stream and that was recovered."""
    session_id = world.session(user_id=user_id)
    scenes.say(session_id)
    scenes.begin(session_id)
    world.change(session_id, owner=world.worker(stopped_at=world.NOW), fence=7)
    for _ in service.recover_all(worker_id=world.worker().pk, now=world.after(seconds)):
        pass
    return RecoveryClaim.objects.get(session_id=session_id)


def test_own_claims_are_listed_newest_first_with_what_was_found_and_done(ann: Caller, bob: Caller) -> None:
    first, second = (claimed(ann.user_id, seconds=number) for number in range(2))
    claimed(bob.user_id, seconds=2)

    told = ann.get("/recovery/claims").json()["results"]

    assert [row["id"] for row in told] == [second.pk, first.pk]
    row = told[0]
    assert row == {
        "id": second.pk,
        "session": second.session_id,
        "boundary_seq": second.boundary_seq,
        "lost_fence": 7,
        "lost_owner": second.lost_owner,
        "worker": second.worker,
        "death": "proved",
        "outcome": "continued",
        "found": {"attempts": 1, "tools": 0, "parts": 0},
        "continuation": second.continuation,
        "created_at": row["created_at"],
    }
    assert row["created_at"].endswith("Z")
    only = ann.get(f"/recovery/claims?session={first.session_id}").json()["results"]
    assert [each["id"] for each in only] == [first.pk]


def test_claims_of_others_are_for_staff(ann: Caller, bob: Caller) -> None:
    claim = claimed(bob.user_id)

    assert ann.get("/recovery/claims").json()["results"] == []
    refused(ann.get(f"/recovery/claims?session={claim.session_id}"), 404, "session_not_found")
    refused(ann.get("/recovery/claims?all=true"), 403, "forbidden")
    User.objects.filter(pk=ann.user_id).update(is_staff=True)
    for query in ("?all=true", f"?all=true&session={claim.session_id}"):
        assert [row["id"] for row in ann.get(f"/recovery/claims{query}").json()["results"]] == [claim.pk]
    assert ann.get("/recovery/claims").json()["results"] == []


def test_pages_give_each_claim_once(ann: Caller) -> None:
    made = {claimed(ann.user_id).pk for _ in range(3)}

    pages = pages_of(ann, "/recovery/claims", limit=2)

    assert [len(page) for page in pages] == [2, 1]
    assert {row["id"] for page in pages for row in page} == made


def test_nobody_is_asked_who_they_are(db: None) -> None:
    refused(Caller().get("/recovery/claims"), 401, "not_authenticated")
