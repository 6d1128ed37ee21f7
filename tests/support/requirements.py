"""Says what a test needs from the machine.

``@requires("redis")`` skips the test where no Redis answers, and tells so by name at the end of the run.
With ``HOLDFAST_TEST_REQUIRE=all`` such a test fails instead.
"""

import os

import pytest

from tests.support import servers


def requires(*requirements: servers.Requirement) -> pytest.MarkDecorator:
    """Mark a test, class or module (``pytestmark = requires("chromium")``)."""
    return pytest.mark.requires(*requirements)


def need(*requirements: servers.Requirement) -> None:
    """The same from inside a fixture or a test."""
    missing = [requirement for requirement in requirements if not servers.is_there(requirement)]
    if not missing:
        return
    reason = f"needs {', '.join(missing)}"
    if os.environ.get("HOLDFAST_TEST_REQUIRE") == "all":
        pytest.fail(f"{reason}, and HOLDFAST_TEST_REQUIRE=all allows no skip", pytrace=False)
    pytest.skip(reason)
