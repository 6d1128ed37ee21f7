"""What is stored, with its constraints. Rows change only through the services that own them."""

from sessions_app.models.access import ApiToken, SetupLink
from sessions_app.models.attempts import ProviderAttempt
from sessions_app.models.catalog import Agent
from sessions_app.models.inputs import SessionInput
from sessions_app.models.messages import MessagePart, PartCheckpoint, SessionMessage
from sessions_app.models.sessions import Session, SessionEvent, Tombstone
from sessions_app.models.workers import Worker

__all__ = [
    "Agent",
    "ApiToken",
    "MessagePart",
    "PartCheckpoint",
    "ProviderAttempt",
    "Session",
    "SessionEvent",
    "SessionInput",
    "SessionMessage",
    "SetupLink",
    "Tombstone",
    "Worker",
]
