"""Log output: one line per record, as text or as JSON. Event names are constant, fields come as extra."""

import json
import logging
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


class TextFormatter(logging.Formatter):
    """``time LEVEL logger event field=value ...``"""

    def format(self, record: logging.LogRecord) -> str:
        head = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}"
        line = " ".join([head, *(f"{name}={value}" for name, value in _fields(record).items())])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line. Values that JSON does not know are written as text."""

    def format(self, record: logging.LogRecord) -> str:
        entry = _fields(record) | {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
            "pid": record.process,
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


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
