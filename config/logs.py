"""Log output: one line per record, as text or as JSON. Event names are constant, fields come as extra."""

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any, Final, Literal

# Django adds the request as an object; its path is in the message already.
_NOT_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "request",
}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _NOT_FIELDS}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


_TOLD: Final = (OSError, ImportError, AttributeError, NameError, NotImplementedError)
"""Errors whose text speaks of the program or the machine. That of any other may repeat what people wrote: a database
repeats the row that it refused, a parser what it could not read."""

_FRAME: Final = re.compile(r'  File "[^"]*", line \d+, in \S+\Z')
_SECRET: Final = re.compile(r"(?<=/first-run/)[^\s/?\"']+|(?<=ticket=)[^\s&\"']+|\bhft_[\w-]+|\bsk-[\w-]{8,}")


def trace(error: BaseException) -> str:
    """Where an error came from, and those that led to it; its own text only where that holds nothing of people's."""
    lines: list[str] = []
    seen: set[int] = set()
    _tell(error, lines, seen)
    return "\n".join(lines)


def _tell(error: BaseException, lines: list[str], seen: set[int]) -> None:
    seen.add(id(error))
    led_here = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if led_here is not None and id(led_here) not in seen:
        _tell(led_here, lines, seen)
        lines.append("which led to:")
    lines.append("Traceback (most recent call last):")
    lines += "".join(traceback.format_tb(error.__traceback__)).splitlines()
    text = f": {error}" if isinstance(error, _TOLD) else " (its text is not logged)"
    lines.append(f"{type(error).__module__}.{type(error).__qualname__}{text}")
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        if id(inner) not in seen:
            _tell(inner, lines, seen)


def _event(record: logging.LogRecord) -> str:
    """The message; of one into which somebody wrote a traceback, the frames."""
    message = record.getMessage()
    if "\n" not in message:
        return message
    frames = [line for line in message.splitlines() if _FRAME.match(line)]
    return "\n".join([f"{record.name}.failed (its text is not logged)", *frames]) if frames else message


def _without_secrets(line: str) -> str:
    return _SECRET.sub("(not logged)", line)


def _clean(value: object) -> object:
    return _without_secrets(value) if isinstance(value, str) else value


class TextFormatter(logging.Formatter):
    """``time LEVEL logger event field=value ...``"""

    def format(self, record: logging.LogRecord) -> str:
        head = f"{_time(record)} {record.levelname} {record.name} {_event(record)}"
        line = " ".join([head, *(f"{name}={value}" for name, value in _fields(record).items())])
        if record.exc_info and record.exc_info[1]:
            line += "\n" + trace(record.exc_info[1])
        return _without_secrets(line)


class JsonFormatter(logging.Formatter):
    """One JSON object per line. Values that JSON does not know are written as text."""

    def format(self, record: logging.LogRecord) -> str:
        entry = _fields(record) | {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "event": _event(record),
            "pid": record.process,
        }
        if record.exc_info and record.exc_info[1]:
            entry["exception"] = trace(record.exc_info[1])
        clean = {name: _clean(value) for name, value in entry.items()}
        return json.dumps(clean, default=lambda value: _without_secrets(str(value)))


def logging_config(log_format: Literal["text", "json"]) -> dict[str, Any]:
    formatter = {"text": TextFormatter, "json": JsonFormatter}[log_format]
    quiet = {"handlers": ["stderr"], "level": "WARNING", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # Django's own handlers for its loggers give way to the one above.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            # A client's error is the client's to know; only ours are told.
            "django.request": {"level": "ERROR"},
            # While Redis is away its layer would print a traceback every second; the live stream tells of it once.
            "channels_redis.pubsub": {"level": "CRITICAL"},
            # It repeats the name that was tried, which may be a password typed into the wrong field.
            "axes": {"level": "ERROR"},
            # django-q2 tells of every task, daphne of every request, httpx2 of every URL.
            **dict.fromkeys(("django-q", "daphne", "httpx2", "httpcore2"), quiet),
        },
    }
