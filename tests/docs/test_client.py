"""The example client against a real installation that is killed under its hands."""

import importlib.util
import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from sessions_app.api import openapi
from tests.support.processes import PROJECT, Instance
from tests.support.waiting import until

WORDS = 40
GUIDE = (PROJECT / "docs" / "api.md").read_text(encoding="utf-8")


def load() -> ModuleType:
    """As a user has it: a file by itself."""
    path = PROJECT / "docs" / "examples" / "client.py"
    spec = importlib.util.spec_from_file_location("example_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load()


class Losing(httpx2.HTTPTransport):
    """The first answer to each of these requests is lost on its way back: the server has acted on it."""

    def __init__(self, *losses: str) -> None:
        super().__init__()
        self.losses = list(losses)
        self.sent: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        what = f"{request.method} {request.url.path.rpartition('/')[2]}"
        self.sent.append(what)
        response = super().handle_request(request)
        if what in self.losses:
            self.losses.remove(what)
            response.read()
            response.close()
            raise httpx2.ReadError("the connection was lost", request=request)
        return response


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    with Instance.prepare(tmp_path, HOLDFAST_SWEEP_SECONDS="1") as made:
        made.start()
        made.manage(
            "createsuperuser",
            "--noinput",
            DJANGO_SUPERUSER_USERNAME="ann",
            DJANGO_SUPERUSER_PASSWORD="a long enough one",
            DJANGO_SUPERUSER_EMAIL="ann@example.org",
        )
        yield made


class Asking(threading.Thread):
    """``ask`` in a thread of its own, with every event that it saw."""

    def __init__(self, client: Any, session: str, text: str) -> None:
        super().__init__(daemon=True)
        self.client, self.session, self.text = client, session, text
        self.seen: list[tuple[str, Any]] = []
        self.chosen: list[str] = []
        self.answer: Any = None
        followed = client.follow

        def follow(*arguments: Any, **named: Any) -> Iterator[tuple[str, Any]]:
            with closing(followed(*arguments, **named)) as stream:
                for each in stream:
                    self.seen.append(each)
                    yield each

        client.follow = follow
        self.start()

    def run(self) -> None:
        self.answer = example.ask(self.client, self.session, self.text, self.choose)

    def choose(self, attempt: Any) -> str:
        self.chosen.append(attempt["id"])
        return "retry"

    @property
    def seqs(self) -> list[int]:
        return [data["seq"] for kind, data in self.seen if kind == "event"]


def test_the_example_loses_nothing_when_answers_are_lost_and_everything_is_killed(instance: Instance) -> None:
    token = instance.manage("create_api_token", "ann").stdout.strip()
    wire = Losing("POST sessions", "POST prompts", "POST decide")
    with example.Client(instance.base_url, token, transport=wire) as client:
        session = client.create_session(recovery_policy="ask")

        asking = Asking(client, session, f"[[words {WORDS}]] [[delay 50]]")
        until(lambda: [each for each in asking.seen if each[0] == "delta"][3:], within=20, what="live text")
        instance.kill_everything()
        instance.start()
        asking.join(60)

        assert not asking.is_alive(), (asking.seen[-3:], instance.output[-3000:])
        assert wire.losses == []
        assert [wire.sent.count(each) for each in ("POST sessions", "POST prompts", "POST decide")] == [
            2,
            2,
            2,
        ]
        (prompt,) = [
            row
            for row in client.call("GET", f"/sessions/{session}/prompts?state=all")["results"]
            if row["origin"] == "user"
        ]
        events = client.call("GET", f"/sessions/{session}/events")["results"]
        assert asking.seqs == [event["seq"] for event in events if event["seq"] > prompt["admitted_seq"]]
        attempts = client.call("GET", f"/attempts?session={session}")["results"]
        assert [attempt["id"] for attempt in attempts if attempt["state"] == "unknown"] == asking.chosen
        assert len(asking.chosen) == 1
        messages = client.call("GET", f"/sessions/{session}/messages")["results"]
        stored = [part["text"] for message in messages for part in message["parts"] if part["text"]]
        assert asking.answer.text == "\n\n".join(stored)
        assert stored[-1].endswith(str(WORDS))


def test_the_documentation_names_routes_that_exist() -> None:
    paths = openapi.document()["paths"]
    named = []
    for line in GUIDE.splitlines():
        words = line.replace("`", " ").split()
        for method, address in itertools.pairwise(words):
            if method in ("GET", "POST", "PATCH", "DELETE") and address.startswith("/"):
                named.append(address)
                path = f"/api/v1{address.partition('?')[0].replace('{id}', '{session_id}')}"
                assert method.lower() in paths[path], line

    assert len(named) > 8


def test_the_documentation_names_every_code() -> None:
    answers = [
        answer["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"]["enum"]
        for methods in openapi.document()["paths"].values()
        for described in methods.values()
        for answer in described["responses"].values()
        if "application/problem+json" in answer.get("content", {})
    ]
    rows = {line.split("`")[1] for line in GUIDE.splitlines() if re.match(r"\| `\w+` \| \d", line)}

    assert rows == {code for codes in answers for code in codes}
