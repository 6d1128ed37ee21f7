"""What a wire format is made of: a request body, headers, and a reader of the answer."""

import json
from collections.abc import Iterable
from typing import Final, Protocol

from pydantic import JsonValue

from schema.attempts import Reason, Usage
from schema.ids import AttemptId
from sessions_app.providers import port, sse

MOST_DOLLARS: Final = 1e6
MOST_TOKENS: Final = 10**12
"""More is a counter that ran below zero; sums of it would fit no column."""
"""Of one attempt; more than that is no cost that anybody means."""


class Reported(Exception):
    """The provider said in its answer that it failed; the payload holds its words."""

    def __init__(self, payload: JsonValue) -> None:
        self.payload = payload
        super().__init__("The provider reported an error.")


class Undecodable(Exception):
    """A frame of the answer is not what the format allows."""


class Incomplete(Exception):
    """The answer ended cleanly and without its terminal marker."""


class Unusable(Exception):
    """The answer is complete, and there is nothing in it to use."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason: Reason = reason
        super().__init__(detail)


def nothing(finish: str, *, has_reasoning: bool) -> Unusable:
    """Why a complete answer holds neither text nor a call, and what to do about it."""
    if finish == "content_filter":
        return Unusable(
            "content_filter",
            "The provider withheld the answer (content filter). Edit the message, or choose another model.",
        )
    if finish == "length":
        return Unusable(
            "empty",
            "The model used up its output limit before it answered. Ask for less, or choose a model with a "
            "higher limit.",
        )
    if has_reasoning:
        return Unusable(
            "empty", "The model only reasoned and gave no answer. Send the message again, or ask for less."
        )
    return Unusable("empty", "The model gave an empty answer. Send the message again.")


class Reader(Protocol):
    """Reads one answer. Pure: events in, items out; how the bytes were split makes no difference."""

    @property
    def usage(self) -> Usage | None:
        """What the provider reported so far, also when the answer does not complete."""

    @property
    def is_complete(self) -> bool:
        """Whether the terminal marker arrived: the attempt counts as completed whatever follows."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more can follow."""

    def read(self, event: sse.Event) -> Iterable[port.Item]:
        """The items of one event. Raises Reported or Undecodable."""

    def read_whole(self, body: bytes) -> Iterable[port.Item]:
        """The items of an answer that came as one JSON document although a stream was asked for.

        Raises Reported or Undecodable.
        """

    def finish(self) -> Iterable[port.Item]:
        """The last items, Finished included. Raises Incomplete, or Unusable for an empty answer."""


class WireFormat(Protocol):
    """One way to ask a model over HTTP."""

    @property
    def path(self) -> str:
        """What follows the base URL."""

    @property
    def counts_cache_as_input(self) -> bool:
        """Whether its input tokens include those that were read from a cache or written to it."""

    def headers(self, *, key: str | None, attempt: AttemptId) -> dict[str, str]: ...

    def encode(self, request: port.ModelRequest) -> dict[str, JsonValue]:
        """The body. Pure: equal requests give equal bodies."""

    def reader(self) -> Reader: ...


def decoded(data: str) -> dict[str, JsonValue]:
    """The JSON object of a frame. Raises Undecodable."""
    try:
        payload: JsonValue = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Undecodable("A frame of the answer is not valid JSON.") from error
    if not isinstance(payload, dict):
        raise Undecodable("A frame of the answer is no JSON object.")
    return payload


def decoded_or_text(data: str) -> JsonValue:
    """What an error frame says; some servers send plain text."""
    try:
        payload: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return payload


def document(body: bytes) -> dict[str, JsonValue]:
    """The JSON object of an answer that is no stream.

    Raises Undecodable, or Reported for a list, which is how some servers wrap an error.
    """
    try:
        payload: JsonValue = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Undecodable("The answer is neither an event stream nor valid JSON.") from error
    if isinstance(payload, list):
        raise Reported(payload)
    if not isinstance(payload, dict):
        raise Undecodable("The answer is JSON, and no object.")
    return payload


def objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """The objects in a list; empty for everything else."""
    if not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, dict)]


def count(value: JsonValue) -> int | None:
    """A number of tokens, if it is one that a provider can mean."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MOST_TOKENS else None


def amount(value: JsonValue) -> float | None:
    """A sum of money, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(float(value), 10) if 0 <= value < MOST_DOLLARS else None
