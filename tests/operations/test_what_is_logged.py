"""A whole life of an installation, with a tool, an error, a crash and its recovery, leaves no word of anybody in its log."""

import json
import re

from tests.operations.conftest import House
from tests.support.waiting import until

PROBE = "zebra-7731"


def test_no_line_holds_what_was_said_and_every_line_of_ours_is_json(house: House) -> None:
    session_id = house.session()
    house.call("PATCH", f"/api/v1/sessions/{session_id}", {"title": PROBE})
    house.prompt(
        session_id, f'{PROBE} [[tool calculator {{"expression": "1 / 0 + {PROBE}"}}]] [[then {PROBE}]]'
    )
    assert house.wait(session_id)["state"] == "idle"
    house.prompt(session_id, f"{PROBE} [[error partial 1]]")
    house.wait(session_id)
    house.prompt(session_id, f"{PROBE} [[delay 100]] [[words 30]]")
    until(lambda: house.call("GET", f"/api/v1/sessions/{session_id}/status").json()["state"] == "busy")
    house.instance.kill("worker")
    until(
        lambda: house.call("GET", f"/api/v1/recovery/claims?session={session_id}").json()["results"],
        within=60,
        what="a claim",
    )
    for body in ("{", {"text": PROBE, PROBE: PROBE}, {"text": ""}):
        house.call("POST", f"/api/v1/sessions/{session_id}/prompts", body)

    written = house.instance.output
    assert "recovery.claimed" in written
    assert PROBE not in written
    assert house.token not in written
    lines = [line for line in written.splitlines() if not line.startswith("holdfast: ")]
    assert [line for line in lines if not _is_record(line)] == []


def _is_record(line: str) -> bool:
    """The supervisor's own words to whoever started it are for people."""
    record = json.loads(line) if line.startswith("{") else {}
    return bool(re.fullmatch(r"[\w .:]+", record.get("event", "")))
