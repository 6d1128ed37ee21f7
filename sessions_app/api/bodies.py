"""What requests may hold: closed pydantic models for bodies and queries, read once, at the edge."""

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar

from django.http import HttpRequest
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from schema.attempts import AttemptState
from schema.events import RecoveryPolicy
from schema.inputs import Delivery
from schema.limits import MAX_BODY_BYTES, MAX_NAME_CHARACTERS, MAX_PROMPT_CHARACTERS, MAX_TITLE_CHARACTERS
from schema.text import clean
from sessions_app.api import problems

MAX_WAIT_SECONDS: Final = 60
MAX_SEQ: Final = 2**63 - 1
MAX_SEQ_DIGITS: Final = 18
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}\Z")


def _clean(value: object) -> object:
    return clean(value) if isinstance(value, str) else value


def _storable(value: str) -> str:
    if clean(value) != value:
        raise ValueError("has characters that cannot be stored")
    return value


CLEANED: Final = BeforeValidator(_clean)
"""Comes last: what stands behind it describes the function and is no part of the OpenAPI document."""

Text = Annotated[str, CLEANED]
"""Text that loses what cannot be stored: NUL and lone surrogates."""

Title = Annotated[str, Field(max_length=MAX_TITLE_CHARACTERS), CLEANED]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS), AfterValidator(_storable)]


def _said(description: str) -> Any:
    """What a parameter means, for the OpenAPI document."""
    return Field(description=description)


def _digits(value: object) -> object:
    if isinstance(value, str) and not _NUMBER.match(value):
        raise ValueError("must be a number in digits")
    return value


_DIGITS: Final = BeforeValidator(_digits)
Seq = Annotated[int, Field(ge=0, le=MAX_SEQ), _DIGITS]


def _written(**rules: JsonValue) -> Any:
    """What a text must look like. Only told here: the verb that is called refuses, with a code of its own."""
    return Field(json_schema_extra=rules)


class Body(BaseModel):
    """A JSON object. Unknown fields are refused, and a text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Query(BaseModel):
    """The part of an address after the question mark. Unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid")


class Nothing(Body):
    pass


class NoQuery(Query):
    pass


class NewSession(Body):
    id: Annotated[str | None, _written(pattern="^ses_[A-Za-z0-9-]{8,64}$")] = None
    title: Title | None = None
    agent: Name | None = None
    model: Name | None = None
    recovery_policy: RecoveryPolicy | None = None


class SessionChange(Body):
    """Absent stays as it is. A recovery policy of null goes back to the agent's or the site's."""

    title: Title = ""
    agent: Name = ""
    model: Name = ""
    archived: bool = False
    pinned: bool = False
    recovery_policy: RecoveryPolicy | None = None

    def given(self) -> dict[str, Any]:
        changes = {name: getattr(self, name) for name in self.model_fields_set}
        if "recovery_policy" in changes:
            changes["recovery_policy"] = changes["recovery_policy"] or ""
        return changes


class NewPrompt(Body):
    id: Annotated[str | None, _written(pattern="^msg_(?!rec-)[A-Za-z0-9-]{8,64}$")] = None
    text: Annotated[str, _written(minLength=1, maxLength=MAX_PROMPT_CHARACTERS), CLEANED]
    delivery: Delivery | None = None
    wake: bool | None = None


class PromptChange(Body):
    delivery: Delivery


class Wait(Body):
    timeout: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] = MAX_WAIT_SECONDS


class Interrupt(Body):
    resume: bool = False


class Revert(Body):
    message_id: Name


class PageQuery(Query):
    cursor: Annotated[str | None, _said("The next of the page before; leave it out to begin.")] = None
    limit: Annotated[int, Field(ge=1, le=200), _DIGITS, _said("How many at most.")] = 50


class SessionsQuery(PageQuery):
    q: Annotated[Text, _said("Words of the title.")] = ""
    archived: Annotated[bool, _said("Only those that are put away, or only the others.")] = False
    needs_decision: Annotated[bool | None, _said("Only those in this state, or only the others.")] = None


class PromptsQuery(PageQuery):
    state: Literal["pending", "promoted", "withdrawn", "all"] = "pending"


class MessagesQuery(PageQuery):
    order: Literal["asc", "desc"] = "asc"


class OwnedQuery(PageQuery):
    session: Annotated[str | None, _said("Only of this session.")] = None
    state: str | None = None
    needs_decision: Annotated[
        bool | None, _said("Only what waits for a person's decision, or only the rest.")
    ] = None


class AttemptsQuery(OwnedQuery):
    state: AttemptState | None = None


class ToolCallsQuery(OwnedQuery):
    state: Literal["pending", "running", "completed", "error"] | None = None


class ExportQuery(Query):
    format: Literal["json", "markdown"] = "json"


class EventsQuery(Query):
    after: Annotated[Seq, _said("Only events with a greater seq.")] = 0
    limit: Annotated[int, Field(ge=1, le=500), _DIGITS, _said("How many at most.")] = 500


class SchemaQuery(Query):
    format: Literal["json"] = "json"


class StreamQuery(Query):
    after: Annotated[Seq | None, _said("Only events with a greater seq.")] = None


B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)


def read(request: HttpRequest, model: type[B]) -> B:
    """The request's body. Nothing at all counts as an empty object.

    Raises UnsupportedMediaType, BodyTooLarge, Malformed or InvalidFields.
    """
    data = _data(request)
    if data and request.content_type != "application/json":
        raise problems.UnsupportedMediaType
    parsed = _parse(data) if data else {}
    if not isinstance(parsed, dict):
        raise problems.Malformed("The body must be a JSON object.")
    try:
        return model.model_validate(parsed)
    except ValidationError as invalid:
        _refuse(invalid)


def read_query(request: HttpRequest, model: type[Q]) -> Q:
    """The request's query. Of a parameter that comes twice the last counts. Raises InvalidFields."""
    try:
        return model.model_validate(request.GET.dict())
    except ValidationError as invalid:
        _refuse(invalid)


def _data(request: HttpRequest) -> bytes:
    # Django's own limit answers only for what it reads itself, and not in problem documents.
    data = request.read(MAX_BODY_BYTES + 1)
    if len(data) > MAX_BODY_BYTES:
        raise problems.BodyTooLarge(limit=MAX_BODY_BYTES)
    return data


def _parse(data: bytes) -> object:
    try:
        parsed: object = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise problems.Malformed("The body is not UTF-8.") from None
    except RecursionError:
        raise problems.Malformed("The body is nested too deeply.") from None
    except ValueError as error:
        raise problems.Malformed(f"The body is not JSON: {error}.") from None
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _refuse(invalid: ValidationError) -> NoReturn:
    raise problems.InvalidFields(
        _by_field(invalid.errors(include_url=False, include_context=False))
    ) from None


def _by_field(errors: Iterable[ErrorDetails]) -> dict[str, list[str]]:
    by_field: dict[str, list[str]] = {}
    for error in errors:
        field = clean(str(error["loc"][0]))[:MAX_NAME_CHARACTERS] if error["loc"] else "body"
        by_field.setdefault(field, []).append(_reason(error))
    return by_field


def _reason(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return "This field is not known here."
    if error["type"] == "missing":
        return "This field is required."
    return error["msg"].rstrip(".") + "."
