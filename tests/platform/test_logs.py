"""A log line holds ids and kinds, never what people wrote, a key, or the output of a tool."""

import json
import logging
from typing import Any

import pytest

from config import logs
from sessions_app.execution import tasks
from sessions_app.tools.declare import tool
from sessions_app.tools.port import OutcomeUnknown
from tests.tools import calls

PROBE = "what-ann-wrote"
FORMATTERS = [logs.JsonFormatter(), logs.TextFormatter()]


def line_of(error: BaseException | None = None, message: str = "drain.failed", **fields: Any) -> list[str]:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.makeLogRecord({"name": "holdfast", "msg": message, "exc_info": info, **fields})
    return [formatter.format(record) for formatter in FORMATTERS]


def raised(error: BaseException, *, cause: BaseException | None = None) -> BaseException:
    try:
        if cause is None:
            raise error
        raise error from raised(cause)
    except BaseException as caught:  # noqa: BLE001
        return caught


@pytest.mark.parametrize(
    "error",
    [
        raised(ValueError(PROBE)),
        raised(KeyError(PROBE)),
        raised(RuntimeError("outer"), cause=ValueError(PROBE)),
        raised(BaseExceptionGroup(PROBE, [raised(ValueError(PROBE))])),
        raised(type(PROBE, (ValueError,), {"__qualname__": "Named", "__module__": "x"})(PROBE)),
    ],
)
def test_the_text_of_an_error_is_left_out_and_its_kind_and_frames_are_kept(error: BaseException) -> None:
    for line in line_of(error):
        assert PROBE not in line
        assert "test_logs.py" in line
        assert type(error).__qualname__ in line


def test_an_error_of_the_machine_says_what_is_missing() -> None:
    for line in line_of(raised(FileNotFoundError(2, "No such file or directory", "/srv/run"))):
        assert "No such file or directory" in line
        assert "/srv/run" in line


def test_errors_that_lead_to_each_other_in_a_circle_are_told_once() -> None:
    first, second = raised(ValueError("a")), raised(TypeError("b"))
    first.__context__, second.__context__ = second, first

    for line in line_of(first):
        assert line.count("ValueError") == 1


def test_a_traceback_inside_a_message_keeps_its_frames_only() -> None:
    """daphne writes the trace of a failed application into the message."""
    message = (
        f"Exception inside application: {PROBE}\nTraceback (most recent call last):\n"
        f'  File "/srv/app.py", line 3, in call\n    raise ValueError("{PROBE}")\nValueError: {PROBE}\n  {PROBE}'
    )
    for line in line_of(message=message):
        assert PROBE not in line
        assert "/srv/app.py" in line


@pytest.mark.parametrize(
    "secret",
    [
        "hft_abcdefghijklmnop",
        "sk-proj-abcdefghijkl",
        "GET /first-run/abcdef-ghij",
        "/ws/sessions/ses_1?after=0&ticket=abcdef:ghij",
    ],
)
def test_what_opens_a_door_is_blotted_out(secret: str) -> None:
    for line in line_of(message=f"Forbidden: {secret}", path=secret):
        assert "abcdef" not in line
        assert "(not logged)" in line


def test_json_stays_json() -> None:
    line = line_of(raised(ValueError('a"b')), path='/first-run/x"y', session="ses_1")[0]

    assert json.loads(line)["session"] == "ses_1"


def everything(caplog: pytest.LogCaptureFixture) -> str:
    """All that was logged, as it would be written, whatever the level."""
    return "\n".join(formatter.format(record) for record in caplog.records for formatter in FORMATTERS)


async def enter_one_that_raises(error: Exception) -> None:
    @tool
    async def fails() -> str:
        """Fails."""
        raise error

    await calls.call(fails)


async def test_a_tool_whose_outcome_is_unknown_is_logged_without_its_words(caplog) -> None:
    caplog.set_level(logging.DEBUG)
    await enter_one_that_raises(OutcomeUnknown(PROBE))

    assert "tools.call.unknown" in everything(caplog)
    assert PROBE not in everything(caplog)


async def test_a_tool_that_fails_is_logged_without_its_words(caplog) -> None:
    caplog.set_level(logging.DEBUG)
    await enter_one_that_raises(ValueError(PROBE))

    assert PROBE not in everything(caplog)


def test_a_wake_that_fails_is_logged_without_the_text_of_the_error(caplog, monkeypatch) -> None:
    def refuse(_: str) -> bool:
        raise RuntimeError(PROBE)

    monkeypatch.setattr("sessions_app.execution.coordinator.hand_over", refuse)

    with pytest.raises(RuntimeError):
        tasks.drain("ses_1")

    assert "drain.not_started" in everything(caplog)
    assert PROBE not in everything(caplog)
