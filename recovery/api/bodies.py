"""What requests may hold."""

import json
import math
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from recovery import decisions
from schema.text import clean
from sessions_app.api.bodies import CLEANED, Body, PageQuery

MAX_REASON_CHARACTERS: Final = 2000
MAX_RESULT_CHARACTERS: Final = 32_000


def _storable(value: object) -> object:
    """The value without what cannot be stored, at any depth."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("has a number that is too large")
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, Mapping):
        return {clean(str(name)): _storable(each) for name, each in value.items()}
    return value


def _short(value: JsonValue) -> JsonValue:
    if len(json.dumps(value, ensure_ascii=False)) > MAX_RESULT_CHARACTERS:
        raise ValueError(f"may have at most {MAX_RESULT_CHARACTERS} characters as JSON")
    return value


Reason = Annotated[str, Field(max_length=MAX_REASON_CHARACTERS), CLEANED]
Result = Annotated[JsonValue, BeforeValidator(_storable), AfterValidator(_short)]


class AttemptDecision(Body):
    action: decisions.AttemptAction
    reason: Reason | None = None


class CallDecision(Body):
    """``result`` is what a call that is marked done returned."""

    action: decisions.CallAction
    reason: Reason | None = None
    result: Result = None


class ClaimsQuery(PageQuery):
    session: str | None = None
    all: Annotated[bool, Field(description="Those of everybody (staff).")] = False
