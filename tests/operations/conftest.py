"""A real installation with one account."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Instance, Response


@dataclass(frozen=True)
class House:
    instance: Instance
    token: str

    def call(self, method: str, path: str, body: Any = None) -> Response:
        return self.instance.request(method, path, body, token=self.token, timeout=30)

    def session(self) -> str:
        return str(self.call("POST", "/api/v1/sessions", {}).json()["id"])

    def prompt(self, session_id: str, text: str) -> None:
        answer = self.call("POST", f"/api/v1/sessions/{session_id}/prompts", {"text": text})
        assert answer.status == 201, answer.body

    def wait(self, session_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("POST", f"/api/v1/sessions/{session_id}/wait", {}).json()
        return answer


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    directory: Path = tmp_path_factory.mktemp("house")
    with Instance.prepare(
        directory,
        LOG_FORMAT="json",
        HOLDFAST_HEARTBEAT_SECONDS="0.5",
        HOLDFAST_LEASE_SECONDS="3",
        HOLDFAST_SWEEP_SECONDS="0.5",
    ) as instance:
        instance.start()
        instance.manage(
            *("createsuperuser", "--noinput"),
            DJANGO_SUPERUSER_USERNAME="ann",
            DJANGO_SUPERUSER_PASSWORD="a long enough one",
            DJANGO_SUPERUSER_EMAIL="ann@example.org",
        )
        yield House(instance, instance.manage("create_api_token", "ann").stdout.strip())
