"""POST and DELETE /sessions/{id}/revert."""

import pytest

from tests.api.callers import Caller, refused
from tests.recovery import scenes
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_a_revert_is_staged_cleared_and_committed_by_the_next_prompt(ann: Caller, session_id: str) -> None:
    address = f"/sessions/{session_id}"
    first = scenes.say(session_id, "One")
    scenes.answer(session_id)
    second = scenes.say(session_id, "Two")
    scenes.answer(session_id)

    staged = ann.post(f"{address}/revert", {"message_id": second})
    assert (staged.status_code, staged.json()["staged_revert"]) == (200, second)
    assert ann.delete(f"{address}/revert").status_code == 204
    assert ann.delete(f"{address}/revert").status_code == 204
    assert ann.get(address).json()["staged_revert"] is None
    assert len(ann.get(f"{address}/messages").json()["results"]) == 4
    ann.post(f"{address}/revert", {"message_id": second})
    ann.post(f"{address}/prompts", {"text": "Instead"})

    shown = [message["id"] for message in ann.get(f"{address}/messages").json()["results"]]
    assert (shown[0], len(shown)) == (first, 2)
    types = [event["type"] for event in ann.get(f"{address}/events").json()["results"]]
    reverts = [each for each in types if each.startswith("revert.")]
    assert reverts == ["revert.staged", "revert.cleared", "revert.staged", "revert.committed"]


def test_what_cannot_be_staged_is_refused(ann: Caller, session_id: str) -> None:
    address = f"/sessions/{session_id}/revert"
    message = scenes.say(session_id)

    refused(ann.post(address, {"message_id": "msg_0000000000000000"}), 404, "message_not_found")
    refused(ann.post(address, {"message_id": "\0"}), 400, "invalid")
    refused(ann.post(address, {}), 400, "invalid")
    world.change(session_id, owner=world.worker())
    refused(ann.post(address, {"message_id": message}), 409, "busy")
