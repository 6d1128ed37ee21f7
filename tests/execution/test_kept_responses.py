"""A worker is killed in the middle of a kept response: the next one asks, and sends nothing again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Instance, free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import Script, answer, document, response_document, response_events
from tests.support.waiting import until

WORDS = ("Hel", "lo", " there")
RUNNING = document(response_document(status="in_progress"))
FORGOTTEN = document({"error": {"message": "Response not found."}}, status=404)


class House:
    """One installation, its person, and the provider that it asks."""

    def __init__(self, instance: Instance, stub: StubProcess) -> None:
        self.instance = instance
        self.stub = stub
        instance.manage(
            "createsuperuser",
            "--noinput",
            DJANGO_SUPERUSER_USERNAME="ann",
            DJANGO_SUPERUSER_PASSWORD="a long enough one",
            DJANGO_SUPERUSER_EMAIL="ann@example.org",
        )
        self.token = instance.manage("create_api_token", "ann").stdout.strip()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answered = self.instance.request(method, f"/api/v1{path}", body, token=self.token)
        assert answered.status < 400, answered.body
        return answered.json()

    def lose_a_worker(self, *afterwards: Script) -> str:
        """Kill the worker while the answer streams; then the provider answers like this."""
        before = len(self.stub.journal())
        self.stub.script(answer(*response_events(*WORDS, status=None)[:3], end="hold"), *afterwards)
        session = self.call("POST", "/sessions", {"model": "openai-responses:gpt"})["id"]
        self.call("POST", f"/sessions/{session}/prompts", {"text": "Hi"})
        until(lambda: self.text(session) == "Hel", within=30, what="the first word to be kept")
        assert len(self.stub.journal()) == before + 1
        self.instance.kill("worker")
        return str(session)

    def text(self, session: str) -> str:
        messages = self.call("GET", f"/sessions/{session}/messages")["results"]
        return "".join(
            part["text"] for message in messages for part in message["parts"] if part["kind"] == "text"
        )

    def settled(self, session: str, state: str) -> None:
        def is_settled() -> bool:
            return bool(self.call("GET", f"/sessions/{session}/status")["state"] == state)

        until(is_settled, within=60, what=f"the session is {state}\n{self.instance.output}")

    def attempts(self, session: str) -> list[tuple[str, str | None]]:
        rows = self.call("GET", f"/attempts?session={session}")["results"]
        return [(row["state"], row["outcome"]) for row in rows]

    def requests(self, since: int) -> list[tuple[str, str]]:
        return [(entry.method, entry.path) for entry in self.stub.journal()[since:]]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    directory: Path = tmp_path_factory.mktemp("kept")
    with (
        StubProcess.running(free_port()) as stub,
        Instance.prepare(
            directory,
            OPENAI_BASE_URL=f"{stub.url}/v1",
            HOLDFAST_RECOVERY_POLICY="ask",
            HOLDFAST_CHECKPOINT_SECONDS="0.1",
            HOLDFAST_HEARTBEAT_SECONDS="0.5",
            HOLDFAST_LEASE_SECONDS="2",
            HOLDFAST_SWEEP_SECONDS="1",
        ) as instance,
    ):
        instance.start()
        yield House(instance, stub)


def test_a_response_that_ended_while_the_worker_was_dead_is_the_answer(house: House) -> None:
    since = len(house.stub.journal())
    session = house.lose_a_worker(document(response_document(*WORDS)))

    house.settled(session, "idle")

    assert house.text(session) == "Hello there"
    assert house.attempts(session) == [("settled", "completed")]
    assert house.requests(since) == [("POST", "/v1/responses"), ("GET", "/v1/responses/resp_1")]


def test_a_response_that_still_runs_streams_on_to_its_end(house: House) -> None:
    since = len(house.stub.journal())
    session = house.lose_a_worker(RUNNING, answer(*response_events(*WORDS, first=1)))

    house.settled(session, "idle")

    assert house.text(session) == "Hello there"
    assert house.attempts(session) == [("settled", "completed")]
    assert [method for method, _ in house.requests(since)] == ["POST", "GET", "GET"]
    assert house.requests(since)[-1][1] == "/v1/responses/resp_1?stream=true&starting_after=0"


def test_a_response_that_the_provider_forgot_is_left_to_a_person(house: House) -> None:
    since = len(house.stub.journal())
    session = house.lose_a_worker(FORGOTTEN)

    house.settled(session, "needs_decision")

    assert house.text(session) == "Hel"
    assert house.attempts(session) == [("unknown", None)]
    assert [method for method, _ in house.requests(since)] == ["POST", "GET"]
