"""What is counted of the facts that this process commits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sessions_app.figures import tally
from sessions_app.log import StoredEvent

PROMPTS: Final = "prompts"
ATTEMPTS: Final = "attempts"
RECOVERIES: Final = "recoveries"
WAKE_TO_DISPATCH: Final = "wake_to_dispatch"
DELTA_DELAY: Final = "delta_delay"
THROTTLED: Final = "throttled"


def events(session_id: str, stored: Sequence[StoredEvent]) -> None:
    """A listener of commits."""
    for event in stored:
        counted = _COUNTED.get(event.type)
        if counted is not None:
            name, label_of = counted
            tally.count(name, label_of(event.data))


def _settled(data: Mapping[str, object]) -> str:
    return f"{data['outcome']}:{_error_class(data)}"


def _unknown(data: Mapping[str, object]) -> str:
    return f"unknown:{_error_class(data)}"


def _error_class(data: Mapping[str, object]) -> str:
    error = data.get("error")
    return str(error.get("error_class", "")) if isinstance(error, Mapping) else ""


_COUNTED: Final[Mapping[str, tuple[str, Callable[[Mapping[str, object]], str]]]] = {
    "prompt.admitted": (PROMPTS, lambda data: str(data.get("origin", ""))),
    "attempt.settled": (ATTEMPTS, _settled),
    "attempt.unknown": (ATTEMPTS, _unknown),
    "recovery.claimed": (RECOVERIES, lambda data: str(data["outcome"])),
}
