"""One installation with real processes for all conversations: its user talks to ``demo:scripted`` over HTTP."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.recovery import talks
from tests.recovery.talks import Talk

ASKING: Final = "careful"
"""The name of an agent that asks a person about every tool."""

_MAKE_AGENT: Final = (
    f"from sessions_app.models import Agent; Agent.objects.create(name='{ASKING}', tool_modes={{'*': 'ask'}})"
)


@pytest.fixture(scope="package")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    with talks.prepared(tmp_path_factory.mktemp("house")) as talk:
        talk.instance.manage("shell", "-v", "0", "-c", _MAKE_AGENT)
        talk.instance.start()
        yield talk
