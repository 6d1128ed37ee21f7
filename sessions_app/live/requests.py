"""What a client may send on its socket (contract section 4)."""

import json
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, TypeAdapter, ValidationError

from schema.base import Contract
from schema.inputs import Delivery
from schema.limits import MAX_PROMPT_CHARACTERS
from schema.text import clean

LARGEST_FRAME: Final = 12 * MAX_PROMPT_CHARACTERS + 10_000
"""Characters: JSON may write one code point as two escapes of six."""


class BadRequest(Exception):
    """The frame cannot be understood; the text says why."""


class PromptRequest(Contract):
    t: Literal["prompt"]
    id: StrictStr
    text: StrictStr
    delivery: Delivery = "steer"


class SyncRequest(Contract):
    t: Literal["sync"]
    after: Annotated[StrictInt, Field(ge=0, lt=2**63)]


class InterruptRequest(Contract):
    t: Literal["interrupt"]
    resume: StrictBool = False


Request = PromptRequest | SyncRequest | InterruptRequest

_ANY: Final[TypeAdapter[Request]] = TypeAdapter(Annotated[Request, Field(discriminator="t")])
_KNOWN: Final = ("prompt", "sync", "interrupt")


def read(text: str) -> Request:
    """The request in a text frame. Raises BadRequest."""
    if len(text) > LARGEST_FRAME:
        raise BadRequest(f"The frame has {len(text)} characters; at most {LARGEST_FRAME} are allowed.")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest("The frame is not JSON.") from None
    if not isinstance(value, dict) or value.get("t") not in _KNOWN:
        raise BadRequest(f"Unknown frame. Known values of t: {', '.join(_KNOWN)}.")
    return _read(value)


def _read(value: dict[str, Any]) -> Request:
    if isinstance(value.get("text"), str):
        value["text"] = clean(value["text"])
    try:
        return _ANY.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"][1:])
        raise BadRequest(f"{where}: {first['msg']}.") from None
