"""What one method of one address takes and gives: read by the endpoint, shown by the OpenAPI document."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from sessions_app.api import bodies

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Operation:
    summary: str
    query: type[bodies.Query]
    body: type[bodies.Body] | None
    answers: dict[int, type[BaseModel] | None]
    """By status; None where the shape has no model."""
    refusals: tuple[int, ...]
    """Statuses of refusals beyond those that any request may meet."""


_ATTRIBUTE: Final = "operation"


def operation(
    summary: str,
    *,
    query: type[bodies.Query] = bodies.NoQuery,
    body: type[bodies.Body] | None = None,
    answers: dict[int, type[BaseModel] | None] | None = None,
    refusals: tuple[int, ...] = (),
) -> Callable[[F], F]:
    """Describes a handler. It is called with ``query`` and ``body`` as far as they have models of their own."""
    described = Operation(
        summary=summary,
        query=query,
        body=body,
        answers={200: None} if answers is None else answers,
        refusals=refusals,
    )

    def describe(handler: F) -> F:
        setattr(handler, _ATTRIBUTE, described)
        return handler

    return describe


def operation_of(handler: Callable[..., Any]) -> Operation:
    described: Operation = getattr(handler, _ATTRIBUTE)
    return described
