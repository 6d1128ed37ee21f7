"""What a model is told about a step that did not complete."""

from typing import Final

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

_BY_OUTCOME: Final = {
    "interrupted": INTERRUPTED,
    "shutdown": SHUTDOWN,
    "unknown": UNKNOWN,
    "failed": FAILED,
}


def notice_for(outcome: str) -> str:
    """What to tell the model about a step that ended like this; empty when there is nothing to tell."""
    return _BY_OUTCOME.get(outcome, "")
