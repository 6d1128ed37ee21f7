"""What may be written into the fields of an agent that hold JSON."""

from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import ValidationError

RUN_THERE: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("web_search", "web_fetch", "code_execution"),
    "openai-responses": ("web_search", "file_search", "code_interpreter", "image_generation"),
}
"""The kinds that run at the provider from call to result. Others its API calls tools wait for an answer of
ours, or would store a secret here (servers of the Model Context Protocol are added as such)."""


MODES: Final = ("allow", "ask", "deny")


def validate_tool_modes(value: Any) -> None:
    """Tool name to mode. Raises ValidationError with what to write instead."""
    if not isinstance(value, dict):
        raise ValidationError('Write an object: {"send_webhook": "ask", "*": "allow"}.')
    for tool, mode in value.items():
        if mode not in MODES:
            raise ValidationError(f"The mode of {tool!r} is one of {', '.join(MODES)}, not {mode!r}.")


def validate_hosted_tools(value: Any) -> None:
    """Provider to the tools of its API. Raises ValidationError with what to write instead."""
    if not isinstance(value, dict):
        raise ValidationError('Write an object: {"anthropic": [{"type": ..., "name": ...}]}.')
    for provider, tools in value.items():
        kinds = RUN_THERE.get(provider)
        if kinds is None:
            raise ValidationError(
                f"{provider!r} runs no tools itself. Name one of {', '.join(sorted(RUN_THERE))}."
            )
        if not isinstance(tools, list):
            raise ValidationError(f"Give {provider!r} a list of tools.")
        for tool in tools:
            _validate_tool(tool, provider=provider, kinds=kinds)


def _validate_tool(tool: Any, *, provider: str, kinds: tuple[str, ...]) -> None:
    if not isinstance(tool, dict) or not _is_of(tool.get("type"), kinds):
        raise ValidationError(
            f"Each tool of {provider!r} is an object as its API takes it, whose type is one of "
            f"{', '.join(kinds)}, with its date where it has one."
        )


def _is_of(kind: object, kinds: tuple[str, ...]) -> bool:
    """``web_search`` is there with a date behind it, too: ``web_search_20250305``."""
    return isinstance(kind, str) and any(kind == each or kind.startswith(f"{each}_") for each in kinds)
