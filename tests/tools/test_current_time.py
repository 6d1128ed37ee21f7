from datetime import UTC, datetime

import pytest

from sessions_app.tools.builtin.current_time import current_time
from sessions_app.tools.enter import Failed, Succeeded
from tests.tools.calls import call

NOW = datetime(2031, 7, 4, 12, 30, 15, 999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "2031-07-04T12:30:15+00:00 (Friday, UTC)"),
        ({"zone": "Europe/Paris"}, "2031-07-04T14:30:15+02:00 (Friday, Europe/Paris)"),
        ({"zone": "Pacific/Kiritimati"}, "2031-07-05T02:30:15+14:00 (Saturday, Pacific/Kiritimati)"),
    ],
)
async def test_the_time_is_told_in_the_zone_that_was_asked_for(
    arguments: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)

    entered = await call(current_time, **arguments)

    assert isinstance(entered, Succeeded)
    assert entered.output.content == told


@pytest.mark.parametrize(
    "zone", ["", "Mars", "../../etc/passwd", "/etc/localtime", "Europe", "x" * 5000, "a\x00"]
)
async def test_a_zone_that_is_none_is_a_known_failure(zone: str) -> None:
    entered = await call(current_time, zone=zone)

    assert isinstance(entered, Failed)
    assert entered.known
    assert "There is no time zone" in entered.error
    assert len(entered.error) < 300
