"""GET /models and /agents."""

import pytest

from sessions_app.models import Agent
from tests.api.callers import Caller, refused

pytestmark = pytest.mark.django_db


def test_the_models_that_can_be_chosen_are_listed(ann: Caller) -> None:
    found = ann.get("/models").json()

    assert found["next"] is None
    assert found["results"][0] == {
        "name": "demo:scripted",
        "label": "Scripted demo",
        "configured": True,
        "tools": True,
        "context_tokens": None,
        "max_output_tokens": None,
        "prices": None,
    }
    refused(ann.get("/models?colour=red"), 400, "invalid")


def test_the_agents_that_can_be_chosen_are_listed_without_their_instructions(ann: Caller) -> None:
    Agent.objects.create(name="pirate", system="A secret of the site.", model="openai:gpt-4.1")

    response = ann.get("/agents")

    assert response.json()["results"] == [
        {"name": "default", "model": "demo:scripted"},
        {"name": "pirate", "model": "openai:gpt-4.1"},
    ]
    assert b"secret" not in response.content
