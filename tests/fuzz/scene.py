"""A running server with something in every state, and the ids of it all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sessions_app.api import examples
from tests.support.processes import Instance
from tests.support.waiting import until

SETTLED: Final = {"idle", "needs_decision", "waiting"}
SPARE: Final = 6
_SETTING_UP: Final = """
from django.contrib.auth.models import User
from django.utils import timezone
from sessions_app import access
from sessions_app.models import Agent
Agent.objects.create(name="careful", tool_modes={"calculator": "ask"}, system="", model="")
ann = User.objects.create_user("ann", is_staff=True)
print(access.create_token(user_id=ann.pk, name="", now=timezone.now()).secret)
"""


@dataclass(frozen=True)
class Scene:
    instance: Instance
    token: str
    ids: dict[str, list[str]]
    """By the name that they have in an address; ``spare`` are sessions that may be deleted, ``documented`` are
    the ids of the examples, which do not exist."""

    @property
    def described_at(self) -> str:
        return f"{self.instance.base_url}/api/v1/schema"


@contextmanager
def running(directory: Path) -> Iterator[Scene]:
    """Started, and filled by scripted conversations that have come to rest."""
    with Instance.prepare(directory, HOLDFAST_RECOVERY_POLICY="ask") as instance:
        instance.start()
        token = instance.manage("shell", "--no-imports", "--command", _SETTING_UP).stdout.strip()
        yield Scene(instance, token, _fill(instance, token))


def _fill(instance: Instance, token: str) -> dict[str, list[str]]:
    def call(method: str, path: str, body: Any = None) -> Any:
        answer = instance.request(method, f"/api/v1{path}", body, token=token)
        assert answer.status < 300, (method, path, answer.body)
        return answer.json()

    def ids(path: str) -> list[str]:
        return [row["id"] for row in call("GET", path)["results"]]

    def session(*texts: str, **about: Any) -> str:
        made = str(call("POST", "/sessions", about)["id"])
        for text in texts:
            call("POST", f"/sessions/{made}/prompts", {"text": text})
            until(lambda: call("GET", f"/sessions/{made}/status")["state"] in SETTLED, what="the answer")
        return made

    calculate = json.dumps({"expression": "6*7"})
    answered = session(f"[[reason Let me see.]] [[tool calculator {calculate}]]", "[[words 5]]", title="Sums")
    unknown = session("[[error ambiguous]]")
    waiting = session(f"[[tool calculator {calculate}]]", agent="careful")
    failed = session("[[error rejected]]")
    for text in ("one", "two", "three", "four"):
        call("POST", f"/sessions/{answered}/prompts", {"text": text, "wake": False})
    spare = [session() for _ in range(SPARE)]
    return {
        "session_id": [answered, unknown, waiting, failed],
        "message_id": ids(f"/sessions/{answered}/prompts?state=all"),
        "attempt_id": ids("/attempts"),
        "call_id": ids("/tool-calls"),
        "spare": spare,
        "documented": list(examples.IDS.values()),
    }
