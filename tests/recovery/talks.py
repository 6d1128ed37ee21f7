"""A person's way into processes under test: the API, the stub provider's journal, the ledger, the database."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg

from tests.recovery import wrapping
from tests.support import servers, stub_provider
from tests.support.processes import PROJECT, Instance
from tests.support.waiting import until

PATIENCE_SECONDS: Final = 90.0

HASTY: Final = {
    "HOLDFAST_HEARTBEAT_SECONDS": "0.5",
    "HOLDFAST_LEASE_SECONDS": "3",
    "HOLDFAST_SWEEP_SECONDS": "0.5",
    "HOLDFAST_CHECKPOINT_SECONDS": "0.2",
    "HOLDFAST_GRACE_SECONDS": "1",
    "HOLDFAST_TOOLS": "tests.recovery.tools",
    "OPENAI_API_KEY": "none",
}


@dataclass
class Talk:
    """One installation and its only user."""

    instance: Instance
    token: str = ""
    provider_url: str = ""

    def sign_up(self) -> None:
        self.instance.environ.update(_ANN)
        self.instance.manage("createsuperuser", "--noinput")
        self.token = self.instance.manage("create_api_token", "ann").stdout.strip()

    # Over the API

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.instance.request(method, f"/api/v1{path}", body, token=self.token)
        assert answer.status < 300, (answer.status, answer.body)
        return answer.json() if answer.body else None

    def session(self, **arguments: Any) -> str:
        made: str = self.call("POST", "/sessions", arguments)["id"]
        return made

    def say(self, session: str, text: str, **options: Any) -> str:
        said: str = self.call("POST", f"/sessions/{session}/prompts", {"text": text, **options})["id"]
        return said

    def status(self, session: str) -> Any:
        return self.call("GET", f"/sessions/{session}/status")

    def messages(self, session: str) -> list[Any]:
        listed: list[Any] = self.call("GET", f"/sessions/{session}/messages?limit=200")["results"]
        return listed

    def attempts(self, session: str) -> list[Any]:
        listed: list[Any] = self.call("GET", f"/attempts?session={session}&limit=200")["results"]
        return listed

    def claims(self, session: str) -> list[Any]:
        listed: list[Any] = self.call("GET", f"/recovery/claims?session={session}")["results"]
        return listed

    def events(self, session: str) -> list[str]:
        found = self.call("GET", f"/sessions/{session}/events?limit=500")["results"]
        return [event["type"] for event in found]

    def until_state(self, session: str, *states: str) -> Any:
        return until(
            lambda: (status := self.status(session))["state"] in states and status,
            within=PATIENCE_SECONDS,
            what=f"{session} is {' or '.join(states)}\n{self.instance.output[-3000:]}",
        )

    def text(self, session: str) -> str:
        """All words that were answered, joined by single blanks wherever an answer was cut."""
        return " ".join(
            word
            for message in self.messages(session)
            if message["type"] == "assistant"
            for part in message["parts"]
            if part["kind"] == "text"
            for word in part["text"].split()
        )

    def until_written(self, session: str, words: int) -> None:
        """That many words of the answer were kept."""
        until(
            lambda: len(self.text(session).split()) >= words,
            within=PATIENCE_SECONDS,
            what=f"{words} words\n{self.instance.output[-3000:]}",
        )

    def until_event(self, session: str, kind: str) -> None:
        until(lambda: kind in self.events(session), within=PATIENCE_SECONDS, what=kind)

    # Beside it

    def ledger(self) -> list[dict[str, Any]]:
        path = self.instance.directory / "ledger"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def until_entered(self, session: str, times: int = 1) -> None:
        until(
            lambda: sum(line["session"] == session for line in self.ledger()) >= times,
            within=PATIENCE_SECONDS,
            what=f"a call was entered\n{self.instance.output[-3000:]}",
        )

    def journal(self) -> list[stub_provider.Entry]:
        return stub_provider.remote_journal(self.provider_url)

    def script(self, *scripts: stub_provider.Script) -> None:
        stub_provider.remote_scripts(self.provider_url, scripts)

    def count(self, session: str) -> int:
        """How often it was recovered in a row."""
        code = (
            "from sessions_app.models import Session;"
            f"print(Session.objects.get(pk='{session}').recovery_count)"
        )
        return int(self.instance.manage("shell", "-v", "0", "-c", code).stdout)

    def kill_everything(self) -> None:
        """What a power cut does to all processes of the installation."""
        for process in self.instance.processes():
            self.instance.kill_process(process, signal.SIGKILL)
        until(lambda: not self.instance.processes(), what="no process left")


_ANN: Final = {
    "DJANGO_SUPERUSER_USERNAME": "ann",
    "DJANGO_SUPERUSER_PASSWORD": "a password for tests",
    "DJANGO_SUPERUSER_EMAIL": "ann@example.org",
}


@contextmanager
def prepared(directory: Path, *, database: str = "sqlite", **environ: str) -> Iterator[Talk]:
    """An installation that is migrated and not started yet, beside a stub provider of its own.

    Whatever was done to it, in the end its tables are what its logs give, and no drain failed: recovery
    would mend what that leaves, and hide it.
    """
    with _provider() as provider_url, _database(database) as url:
        variables = HASTY | wrapping.environ(directory) | {"OPENAI_BASE_URL": f"{provider_url}/v1"} | environ
        with Instance.prepare(directory, database_url=url, **variables) as instance:
            talk = Talk(instance, provider_url=provider_url)
            instance.manage("migrate")
            talk.sign_up()
            yield talk
            assert "drain.failed" not in instance.output, instance.output
            instance.manage("rebuild_projections", "--check")


@contextmanager
def _database(name: str) -> Iterator[str]:
    if name == "sqlite":
        yield ""
        return
    with servers.temporary_postgres_database() as url:
        yield url


@contextmanager
def _provider() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.support.stub_provider"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


def calling(name: str, arguments: str = "{}") -> stub_provider.Script:
    """An answer that is one call."""
    call = {"index": 0, "id": f"call_{name}", "type": "function"}
    made = {"name": name, "arguments": arguments}
    frames = [
        {
            "choices": [
                {"index": 0, "delta": {"tool_calls": [call | {"function": made}]}, "finish_reason": None}
            ]
        },
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return stub_provider.answer(*(f"data: {json.dumps(frame)}\n\n" for frame in frames), "data: [DONE]\n\n")


def sending(*words: str) -> stub_provider.Script:
    """An answer that begins and never ends."""
    frames = stub_provider.chat_frames(*words, finish=None, usage=False, done=False)
    return stub_provider.answer(*frames, end="hold")


def block_connections(url: str, *, allowed: bool) -> None:
    """Take a PostgreSQL database away from everybody, or give it back."""
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {str(allowed).lower()}')
        if not allowed:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
