"""Loaded by Schemathesis: lets it meet what exists."""

import json
import os
import re
import zlib
from typing import Any, Final

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, ServerError

_IDS: Final[dict[str, list[str]]] = json.loads(os.environ["HOLDFAST_FUZZ_IDS"])
_DELETES: Final = "delete_OneSession"
_IS_ID: Final = re.compile(r"(ses|msg|att|prt)_[A-Za-z0-9-]{8,64}\Z")


@schemathesis.hook
def map_path_parameters(
    context: schemathesis.HookContext, path_parameters: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Most well-formed ids are ones that exist, in the session that they belong to."""
    given = dict(path_parameters or {})
    deletes = context.operation is not None and context.operation.definition.raw["operationId"] == _DELETES
    found = {name: _existing("spare" if deletes else name, value) for name, value in given.items()}
    if found.get("message_id") in _IDS["message_id"]:
        found["session_id"] = _IDS["session_id"][0]
    return found


def _existing(name: str, value: Any) -> Any:
    known = _IDS.get(name, [])
    if not isinstance(value, str) or not _IS_ID.match(value):
        return value
    number = zlib.crc32(value.encode())
    is_unknown = number % 8 == 0 and value not in _IDS["documented"]
    return value if is_unknown else known[number // 8 % len(known)]


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """The ids of the examples exist, too."""
    for path, methods in raw_schema["paths"].items():
        for described in methods.values():
            spares = described["operationId"] == _DELETES
            for parameter in described.get("parameters", []):
                if parameter["in"] == "path":
                    known = _known(parameter["name"], spares=spares, with_message="{message_id}" in path)
                    parameter["examples"] = {each: {"value": each} for each in known}


def _known(name: str, *, spares: bool, with_message: bool) -> list[str]:
    if name == "session_id":
        return _IDS["spare"] if spares else _IDS[name][:1] if with_message else _IDS[name]
    return _IDS[name]


@schemathesis.hook
def filter_failure(context: schemathesis.HookContext, failure: Any, case: Any, response: Any) -> bool:
    """Two statuses are not what Schemathesis takes them for: what is planned is no failure of the server, and
    what is too large is refused."""
    allowed = {501: ServerError, 413: AcceptedNegativeData}.get(response.status_code)
    return allowed is None or not isinstance(failure, allowed)
