"""Responses in background mode, as the matrix's provider keeps them: they go on without whoever asked for them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support import stub_provider

_BEFORE_THE_GATE: Final = 3


@dataclass(eq=False, kw_only=True)
class Response:
    """One answer. Its last word, and its end, come once its gate is open."""

    id: str
    words: tuple[str, ...]
    is_open: Callable[[], bool]
    is_cancelled: bool = False
    readers: int = 0
    """How many read its stream just now, whoever began it."""

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def status(self) -> str:
        if self.is_cancelled:
            return "cancelled"
        return "completed" if self.is_open() else "in_progress"

    def document(self) -> dict[str, Any]:
        return stub_provider.response_document(*self._told(), status=self.status, response_id=self.id)

    def events(self, *, first: int) -> list[str]:
        """From that number on, as far as it has come; the last one ends it."""
        status = self.status
        ends = None if status == "in_progress" else status
        return stub_provider.response_events(*self._told(), first=first, status=ends, response_id=self.id)

    def is_over(self) -> bool:
        return self.status != "in_progress"

    def _told(self) -> tuple[str, ...]:
        return self.words if self.status == "completed" else self.words[:_BEFORE_THE_GATE]


@dataclass
class Shelf:
    """All responses that are kept, by their ids."""

    responses: dict[str, Response] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def keep(self, tag: str, *, is_open: Callable[[], bool]) -> Response:
        words = ("This ", "answers ", tag.replace("#", ""), " slowly")
        response = Response(
            id=f"resp_{next(self._numbers)}{tag.replace('#', '_')}", words=words, is_open=is_open
        )
        self.responses[response.id] = response
        return response

    def find(self, response_id: str) -> Response | None:
        """None for one that is not known, or not any more."""
        return None if "_forgotten-" in response_id else self.responses.get(response_id)

    def is_read(self, tag: str) -> bool:
        name = tag.replace("#", "_")
        return any(each.readers for each in self.responses.values() if each.id.endswith(name))
