"""local:smollm2: a real llama.cpp server under ``up``, with a key, on this machine only; and without the extra."""

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from sessions_app import local_model
from sessions_app.management.commands import up
from sessions_app.providers import registry
from sessions_app.supervisor.child import Child
from sessions_app.supervisor.supervise import Supervisor
from tests.support.processes import Instance, Response
from tests.support.requirements import requires
from tests.support.waiting import until

MODEL = registry.LOCAL_MODEL


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    with Instance.prepare(tmp_path, HOLDFAST_LOCAL_MODEL="1") as prepared:
        yield prepared


def environ_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


@requires("local model")
def test_a_real_model_answers_a_chat_from_end_to_end(instance: Instance) -> None:
    instance.start()
    instance.manage(
        "createsuperuser",
        "--noinput",
        DJANGO_SUPERUSER_USERNAME="ann",
        DJANGO_SUPERUSER_PASSWORD="a long enough one",
        DJANGO_SUPERUSER_EMAIL="ann@example.org",
    )
    token = instance.manage("create_api_token", "ann").stdout.strip()

    def call(method: str, path: str, body: Any = None) -> Response:
        return instance.request(method, f"/api/v1{path}", body, token=token, timeout=70)

    offered = {model["name"]: model for model in call("GET", "/models").json()["results"]}
    session = call("POST", "/sessions", {"model": MODEL}).json()["id"]
    call("POST", f"/sessions/{session}/prompts", {"text": "Say hello to Ann in one short sentence."})
    status = call("POST", f"/sessions/{session}/wait", {"timeout": 60}).json()

    assert offered[MODEL]["configured"]
    assert not offered[MODEL]["tools"]
    assert status["state"] == "idle"
    answer = call("GET", f"/sessions/{session}/messages").json()["results"][-1]
    assert (answer["state"], answer["model"]) == ("completed", MODEL), answer
    assert "".join(part["text"] for part in answer["parts"]).strip()
    attempts = call("GET", f"/attempts?session={session}").json()["results"]
    assert attempts[-1]["outcome"] == "completed"
    assert attempts[-1]["usage"]["output_tokens"] > 0

    pid = next(process.pid for process in instance.processes() if process.role == "model")
    assert_guarded(environ_of(pid))
    key = environ_of(pid)["HOLDFAST_LOCAL_KEY"]
    assert instance.stop(signal.SIGTERM, within=20) == 0
    until(lambda: not instance.processes(), within=10, what="no process left")
    assert key not in instance.output


def assert_guarded(environ: dict[str, str]) -> None:
    """It answers nobody without the key, and listens on this machine only."""
    port = int(environ["HOLDFAST_LOCAL_PORT"])
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", data=body)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked, timeout=10)
    refused.value.close()
    assert refused.value.code == 401
    listening = [
        line.split()[1].split(":")
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    ]
    assert [address for address, at in listening if int(at, 16) == port] == ["0100007F"]


def test_the_model_stops_after_those_who_ask_it(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    stopped.touch()

    def child(name: str, *, seconds: float, stops_last: bool) -> Child:
        script = (
            f"trap 'sleep {seconds}; echo {name} >> {stopped}; exit 0' TERM; while :; do sleep 0.02; done"
        )
        return Child(
            name=name, command=["sh", "-c", script], directory=tmp_path, environ={}, stops_last=stops_last
        )

    greeted: list[bool] = []

    def greet() -> bool:
        if greeted:
            signal.raise_signal(signal.SIGTERM)
        greeted.append(True)
        return len(greeted) > 3

    children = [
        child("model", seconds=0, stops_last=True),
        child("workers", seconds=0.2, stops_last=False),
    ]
    supervisor = Supervisor(
        children=children, grace=10, say=lambda line: None, greet=greet, close=lambda: None
    )

    assert supervisor.run() == 0
    assert stopped.read_text().split() == ["workers", "model"]


# Without the extra, or without its server


@pytest.mark.django_db
def test_without_the_extra_it_is_not_offered_and_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: False)

    assert MODEL not in [model.name for model in registry.available()]
    with pytest.raises(registry.LocalModelNotInstalled, match="make local-model"):
        registry.resolve(MODEL)
    assert up._local_model_environ() == {}


@pytest.mark.django_db
def test_without_its_server_it_says_what_starts_it(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: True)

    assert MODEL in [model.name for model in registry.available()]
    with pytest.raises(registry.LocalModelNotServed, match=r"manage\.py up"):
        registry.resolve(MODEL)
    settings.HOLDFAST_LOCAL_PORT, settings.HOLDFAST_LOCAL_KEY = 1, "key"
    assert registry.resolve(MODEL)[0].name == "local"
    with pytest.raises(registry.UnknownModel, match="Choose local:smollm2"):
        registry.resolve("local:other")


def test_every_start_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: True)
    settings.HOLDFAST_LOCAL_MODEL = True

    keys = {up._local_model_environ()["HOLDFAST_LOCAL_KEY"] for _ in range(3)}

    assert len(keys) == 3
    assert min(map(len, keys)) >= 32


def test_the_model_can_be_left_out(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: True)
    settings.HOLDFAST_LOCAL_MODEL = False

    assert not up._has_local_model()
    assert up._local_model_environ() == {}
