"""People and a session of Ann's."""

import pytest

from tests.api import callers
from tests.api.callers import Caller
from tests.support import world


@pytest.fixture
def ann(db: None) -> Caller:
    return callers.with_token("ann")


@pytest.fixture
def bob(db: None) -> Caller:
    """Another user."""
    return callers.with_token("bob")


@pytest.fixture
def session_id(ann: Caller) -> str:
    return world.session(user_id=ann.user_id)
