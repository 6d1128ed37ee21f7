"""What a model is told about a step that did not complete."""

import json
from collections.abc import Iterable
from typing import Final

from pydantic import JsonValue

INTERRUPTED: Final = (
    "[Notice] Your previous answer was stopped by the user before it was finished. What stands above is "
    "all that was received."
)
SHUTDOWN: Final = (
    "[Notice] Your previous answer was interrupted because the server was restarted. What stands above is "
    "all that was received. Go on from there without repeating it."
)
UNKNOWN: Final = (
    "[Notice] The connection to you was lost during your previous answer, and whether it was finished is "
    "unknown. What stands above is all that was received. Go on from there without repeating it."
)
FAILED: Final = (
    "[Notice] Your previous answer ended with an error. What stands above is all that was received."
)
NO_STEPS_LEFT: Final = (
    "[Notice] This is the last step, and no tools are available in it. Answer with what you know now, and "
    "say what is left to do."
)
GO_ON: Final = "[Notice] Continue."
OPENING: Final = "[Notice] The conversation begins with your own message."
CALLS: Final = "[Notice] About the tools of your previous answer."

_BY_OUTCOME: Final = {
    "interrupted": INTERRUPTED,
    "shutdown": SHUTDOWN,
    "unknown": UNKNOWN,
    "failed": FAILED,
}


def notice_for(outcome: str) -> str:
    """What to tell the model about a step that ended like this; empty when there is nothing to tell."""
    return _BY_OUTCOME.get(outcome, "")


def cut_call(name: str) -> str:
    return f"A call of {name or 'a tool'} had only begun: its arguments did not arrive whole, and it was not run."


def hosted_call(name: str, given: dict[str, JsonValue], became: str) -> str:
    """A call that the provider ran and that cannot go back as it came."""
    return f"{name or 'A tool'} was called with {json.dumps(given, ensure_ascii=False)}: {became}"


def with_calls(notice: str, lines: Iterable[str]) -> str:
    """The notice, and under it what is to be said of single calls; empty when there is nothing to say."""
    told = [f"- {line}" for line in lines]
    if not told:
        return notice
    return "\n".join([notice or CALLS, *told])
