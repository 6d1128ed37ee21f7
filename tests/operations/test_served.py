"""The instruments of a real installation: web and worker are two processes."""

import re

from tests.operations.conftest import House
from tests.support.waiting import until


def sample(house: House, line: str) -> float:
    found = re.search(
        rf"^{re.escape(line)} (\S+)$", house.call("GET", "/metrics").body.decode(), re.MULTILINE
    )
    assert found, line
    return float(found[1])


def test_a_started_installation_is_ready(house: House) -> None:
    answer = house.instance.request("GET", "/readyz")

    assert (answer.status, answer.json()["status"]) == (200, "ready")


def test_what_the_worker_counted_is_told_by_the_web_process(house: House) -> None:
    session_id = house.session()
    house.prompt(session_id, "[[words 3]]")
    assert house.wait(session_id)["state"] == "idle"

    completed = 'holdfast_attempts_total{error_class="",outcome="completed"}'
    until(lambda: sample(house, completed) >= 1, what="the worker's figures")

    assert sample(house, "holdfast_wake_to_dispatch_seconds_count") >= 1
    assert 0 < sample(house, "holdfast_wake_to_dispatch_seconds_sum") < 30
    assert sample(house, 'holdfast_prompts_admitted_total{origin="user"}') >= 1
