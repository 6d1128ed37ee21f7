"""What a continuation tells the model, and what people read about a recovery."""

from collections.abc import Sequence
from typing import Final

RESTARTED: Final = "The server was interrupted while this answer was being written."
SUPERSEDED: Final = "A newer turn superseded this unfinished answer."
NEVER_SENT: Final = "The server was interrupted before the request was sent."
RETRY: Final = (
    "[Recovery] The outcome of your previous answer is unknown, and the user asked to try again. Answer the "
    "last message of the user anew."
)
LOST: Final = "The server was interrupted after the request was sent; its outcome is unknown."


_CONTINUE: Final = (
    "[Recovery] The previous answer was interrupted, and its outcome is unknown. Continue from what stands "
    "above. Do not repeat what is already written."
)


def continuation(*, calls: Sequence[str]) -> str:
    """The one synthetic input of a recovery. ``calls`` are the names of tools whose outcome is unknown."""
    if not calls:
        return _CONTINUE
    return (
        f"{_CONTINUE}\nThe outcome of these tool calls is unknown: {', '.join(calls)}. They may have had "
        "their effect. Do not call them again with the same input unless the user asks for it."
    )
