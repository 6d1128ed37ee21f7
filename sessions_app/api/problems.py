"""Every refusal as a problem document (RFC 9457) with a stable code."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from django.http import HttpResponse
from rest_framework import exceptions

from schema.ids import SessionId
from schema.problems import AlreadyDecided, InvalidValue, Problem, SessionNotFound
from sessions_app import log
from sessions_app.api import answers

CONTENT_TYPE: Final = "application/problem+json"

Errors = Mapping[str, list[str]]


class Malformed(Problem):
    """The body is not a JSON object."""

    code = "malformed_json"
    status = 400
    title = "Malformed JSON"


class InvalidFields(Problem):
    """Fields of the body or the query that cannot be used, each with its reasons."""

    code = "invalid"
    status = 400
    title = "Invalid request"

    def __init__(self, errors: Errors) -> None:
        self.errors = errors
        super().__init__(f"These fields cannot be used: {', '.join(errors)}. Correct them and send again.")


class InvalidCursor(Problem):
    code = "invalid_cursor"
    status = 400
    title = "Invalid cursor"

    def __init__(self) -> None:
        super().__init__("The cursor was not made by this list. Leave it out to begin at the start.")


class UnsupportedMediaType(Problem):
    code = "unsupported_media_type"
    status = 415
    title = "Unsupported media type"

    def __init__(self) -> None:
        super().__init__("Send JSON with the header Content-Type: application/json.")


class BodyTooLarge(Problem):
    code = "body_too_large"
    status = 413
    title = "Body too large"

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"The body may have at most {limit} bytes.")


class RouteNotFound(Problem):
    code = "not_found"
    status = 404
    title = "Not found"

    def __init__(self) -> None:
        super().__init__("There is nothing at this address. GET /api/v1/schema lists what there is.")


class NoOverflow(Problem):
    code = "no_overflow"
    status = 404
    title = "No stored output"

    def __init__(self, call_id: str) -> None:
        super().__init__(f"Tool call {call_id!r} has its whole output in its own shape.")


class StaffOnly(Problem):
    code = "forbidden"
    status = 403
    title = "Forbidden"

    def __init__(self) -> None:
        super().__init__("Only staff may see what belongs to others.")


class NotAvailable(Problem):
    code = "not_available"
    status = 501
    title = "Not available"

    def __init__(self) -> None:
        super().__init__("This is planned and not built in this version.")


class _Unexpected(Problem):
    code = "internal_error"
    status = 500
    title = "Internal error"

    def __init__(self) -> None:
        super().__init__("Something went wrong here. The server's log has the reason; try again later.")


class NotAuthenticated(Problem):
    """Neither a valid token nor a web session."""

    code = "not_authenticated"
    status = 401
    title = "Unauthorized"


class Forbidden(Problem):
    """A web session without its CSRF token."""

    code = "forbidden"
    status = 403
    title = "Forbidden"


class MethodNotAllowed(Problem):
    """The header Allow names the methods of this address."""

    code = "method_not_allowed"
    status = 405
    title = "Method Not Allowed"


class NotAcceptable(Problem):
    """The header Accept asks for another media type than this address has."""

    code = "not_acceptable"
    status = 406
    title = "Not Acceptable"


_OF_THE_FRAMEWORK: Final = {
    kind.status: kind for kind in (NotAuthenticated, Forbidden, MethodNotAllowed, NotAcceptable)
}


class _OfTheFramework(Problem):
    """A refusal that the framework decided on and that has no name here."""

    code = "error"

    def __init__(self, error: exceptions.APIException) -> None:
        self.status = error.status_code  # type: ignore[misc]
        self.title = HTTPStatus(error.status_code).phrase  # type: ignore[misc]
        super().__init__(str(error.detail))


def find(error: Exception) -> Problem | None:
    """The problem that tells of this error; None for an error that nobody expected."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, log.SessionGone):
        return SessionNotFound(SessionId(error.session_id))
    if isinstance(error, exceptions.APIException):
        return _of_the_framework(error)
    return None


def _of_the_framework(error: exceptions.APIException) -> Problem:
    kind = _OF_THE_FRAMEWORK.get(error.status_code)
    return _OfTheFramework(error) if kind is None else kind(str(error.detail))


def unexpected() -> Problem:
    """What is told of an error that nobody expected: nothing of it."""
    return _Unexpected()


def render(problem: Problem) -> HttpResponse:
    return answers.json(document(problem), status=problem.status, content_type=CONTENT_TYPE)


def document(problem: Problem) -> dict[str, object]:
    told: dict[str, object] = {
        "type": f"urn:holdfast:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
    }
    errors = _errors(problem)
    if errors:
        told["errors"] = errors
    if isinstance(problem, AlreadyDecided):
        told["decision"] = problem.decision
    return told


def _errors(problem: Problem) -> Errors | None:
    if isinstance(problem, InvalidFields):
        return problem.errors
    if isinstance(problem, InvalidValue):
        return {problem.field: [problem.detail]}
    return None
