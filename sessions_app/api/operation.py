"""What one method of one address takes and gives: read by the endpoint, shown by the OpenAPI document."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from schema.problems import Problem
from sessions_app.api import bodies

F = TypeVar("F", bound=Callable[..., Any])

Shape = type[BaseModel]
Refusals = tuple[type[Problem], ...]


@dataclass(frozen=True, kw_only=True)
class Operation:
    summary: str
    description: str
    query: type[bodies.Query]
    body: type[bodies.Body] | None
    answers: Mapping[int, Shape | None]
    """By status; None where nothing is sent back."""
    files: Mapping[str, Shape | None]
    """What 200 is answered with, by media type; None where that is not JSON."""
    refusals: Refusals
    """Beyond those that any request may meet."""
    headers: Mapping[str, str]
    """Headers that are read, each with what it means."""


_ATTRIBUTE: Final = "operation"


def operation(
    summary: str,
    *,
    description: str = "",
    query: type[bodies.Query] = bodies.NoQuery,
    body: type[bodies.Body] | None = None,
    answers: Mapping[int, Shape | None] | None = None,
    files: Mapping[str, Shape | None] | None = None,
    refusals: Refusals = (),
    headers: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Describes a handler. It is called with ``query`` and ``body`` as far as they have models of their own."""
    described = Operation(
        summary=summary,
        description=description,
        query=query,
        body=body,
        answers=answers or {},
        files=files or {},
        refusals=refusals,
        headers=headers or {},
    )

    def describe(handler: F) -> F:
        setattr(handler, _ATTRIBUTE, described)
        return handler

    return describe


def operation_of(handler: Callable[..., Any]) -> Operation:
    described: Operation = getattr(handler, _ATTRIBUTE)
    return described
