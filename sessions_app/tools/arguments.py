"""The arguments of a call, read from what the model wrote. Pure."""

import json
import math
from typing import Final, NoReturn

from pydantic import JsonValue

from schema.text import clean

DEEPEST: Final = 100
"""How deep arguments may nest: events, databases and providers each end somewhere beyond."""


def parse(raw: str) -> dict[str, JsonValue] | None:
    """The arguments as an object; blank means none. None for anything else: nothing is guessed.

    What Python reads and JSON has not (NaN, numbers without end) and what nests too deep is refused;
    text in it is cleaned, since an escape may hold what the raw text could not.
    """
    if not raw.strip():
        return {}
    try:
        value: JsonValue = json.loads(raw, parse_constant=_refuse, parse_float=_finite)
        cleaned = _clean(value, depth=0)
    except (ValueError, RecursionError):
        return None
    return cleaned if isinstance(cleaned, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large")
    return number


def _clean(value: JsonValue, *, depth: int) -> JsonValue:
    if depth > DEEPEST:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean(each, depth=depth + 1) for each in value]
    if isinstance(value, dict):
        return {clean(name): _clean(each, depth=depth + 1) for name, each in value.items()}
    return value
