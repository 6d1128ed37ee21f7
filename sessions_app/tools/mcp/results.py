"""What a server's answer to a call becomes here."""

import base64
import binascii
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic_core import to_json

from sessions_app.tools.mcp import courier
from sessions_app.tools.port import OutcomeUnknown, Output

_UNANSWERED: Final = frozenset({courier.UNANSWERED, CONNECTION_CLOSED, REQUEST_TIMEOUT, PARSE_ERROR})
"""Codes under which the client tells that no readable answer came. Some servers use one of them for errors
of their own; those calls are taken for unknown, which is the safe mistake."""


def of_result(result: types.CallToolResult) -> Output:
    """The text of the answer, with a line for each part that is no text; those are stored with the whole."""
    media = [block for block in result.content if _media(block) is not None]
    if len(media) == len(result.content) == 1 and not result.is_error:
        return Output(content=_decoded(_media(media[0]) or ""))
    text = "\n\n".join(_text(block) for block in result.content)
    if not text and result.structured_content is not None:
        text = to_json(result.structured_content, inf_nan_mode="constants").decode()
    whole = result.model_dump_json(by_alias=True, exclude_none=True).encode() if media else None
    return Output(content=text, is_error=bool(result.is_error), whole=whole)


def of_error(error: MCPError, *, server: str) -> Output:
    """Raises OutcomeUnknown when the error does not prove what came of the call."""
    if error.code in _UNANSWERED:
        raise OutcomeUnknown(f"{server}: {error.message}")
    if error.code == courier.NOT_SENT:
        return failed(f"The tool was not run: {error.message}.")
    return failed(f"Tool execution failed: {error.message}")


def of_request_for_input() -> Output:
    return failed(
        "The tool asks for more input than its arguments, which cannot be given here. "
        "It did not complete; call it again with everything it needs in its arguments."
    )


def failed(text: str) -> Output:
    return Output(content=text, is_error=True)


def _text(block: Any) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ResourceLink():
            return f"[Resource {block.name}: {block.uri}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.EmbeddedResource(resource=resource):
            return _line(resource.mime_type, _media(block) or "")
        case _:
            return _line(getattr(block, "mime_type", None), _media(block) or "")


def _line(kind: str | None, data: str) -> str:
    return f"[{(kind or 'application/octet-stream')[:100]}, about {len(data) * 3 // 4:,} bytes, stored]"


def _media(block: Any) -> str | None:
    """The base64 of a part that is no text."""
    match block:
        case types.ImageContent() | types.AudioContent():
            return block.data
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return resource.blob
        case _:
            return None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return data.encode("utf-8", "replace")


def progress_line(done: float, total: float | None, message: str | None) -> str:
    """One line of progress from what a server tells of it."""
    share = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{message} ({share})" if message else share
