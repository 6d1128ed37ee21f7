"""Identities: prefixed, sortable by the time they were made."""

import re
from typing import Final, NewType

SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
PartId = NewType("PartId", str)
AttemptId = NewType("AttemptId", str)
WorkerId = NewType("WorkerId", str)
ClaimId = NewType("ClaimId", str)

MAX_LENGTH: Final = 68

CLIENT_ID: Final = re.compile(r"^(ses|msg)_[A-Za-z0-9-]{8,64}\Z")
RESERVED_MESSAGE_PREFIX: Final = "msg_rec-"


def compose(*, prefix: str, milliseconds: int, entropy: bytes) -> str:
    """``prefix_`` + 12 hex digits of Unix milliseconds + the entropy in hex.

    Twelve hex digits hold milliseconds until the year 10889, so that ids sort by time as text.
    """
    return f"{prefix}_{milliseconds:012x}{entropy.hex()}"


def is_client_session_id(text: str) -> bool:
    return bool(CLIENT_ID.match(text)) and text.startswith("ses_")


def is_client_message_id(text: str) -> bool:
    """Whether a client may choose this id for a prompt; ``msg_rec-`` belongs to recovery."""
    return (
        bool(CLIENT_ID.match(text))
        and text.startswith("msg_")
        and not text.startswith(RESERVED_MESSAGE_PREFIX)
    )
