"""Processes that send prompts."""

import sys
from typing import Final

from sessions_app import inbox
from tests.support import world

PROMPTS: Final = 40


def send_often(session_id: str) -> None:
    """Send the same prompts as every other client, and tell which of them were new."""
    for number in range(PROMPTS):
        admission = inbox.admit(
            session_id=session_id,
            message_id=f"msg_of-many-clients-{number}",
            text="Hello",
            delivery="queue",
            wake=True,
            now=world.NOW,
        )
        if admission.created:
            sys.stdout.write(f"{number}\n")
