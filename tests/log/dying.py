"""Processes that are killed at a chosen moment of a transaction."""

import os
import signal
from unittest import mock

from schema.events import ModelSwitched, SessionUpdated
from sessions_app import identity, inbox
from sessions_app.log import session_transaction
from tests.support import world


def die_in_the_body(session_id: str) -> None:
    """Killed after an event was projected, before anything else."""
    with session_transaction(session_id, now=world.NOW) as tx:
        tx.append(ModelSwitched(message=identity.new_message_id(), model="demo:other"))
        os.kill(os.getpid(), signal.SIGKILL)


def die_before_the_commit(session_id: str) -> None:
    """Killed when all statements ran and only the commit is missing."""
    with session_transaction(session_id, now=world.NOW) as tx:
        tx.append(SessionUpdated(title="never"))
        tx.flush()
        os._exit(9)


def die_after_the_commit(session_id: str) -> None:
    """Killed as soon as the transaction returned."""
    with session_transaction(session_id, now=world.NOW) as tx:
        tx.append(SessionUpdated(title="stored"))
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_an_admission(session_id: str, message_id: str) -> None:
    """Killed by the enqueuing of the wake, when the prompt is already inserted."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch("sessions_app.live.wakes.async_task", die):
        inbox.admit(
            session_id=session_id,
            message_id=message_id,
            text="Hello",
            delivery="steer",
            wake=True,
            now=world.NOW,
        )
