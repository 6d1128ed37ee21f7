"""What is stored, with its constraints. Rows change only through the services that own them."""

from sessions_app.models.access import ApiToken, SetupLink
from sessions_app.models.attempts import ProviderAttempt
from sessions_app.models.catalog import Agent, ChatModel, McpServer, ModelTest, Provider
from sessions_app.models.figures import Figure
from sessions_app.models.inputs import SessionInput
from sessions_app.models.messages import MessagePart, PartCheckpoint, SessionMessage, ToolOverflow
from sessions_app.models.notes import SessionNote
from sessions_app.models.sessions import Session, SessionEvent, Tombstone
from sessions_app.models.workers import Worker

__all__ = [
    "Agent",
    "ApiToken",
    "ChatModel",
    "Figure",
    "McpServer",
    "MessagePart",
    "ModelTest",
    "PartCheckpoint",
    "Provider",
    "ProviderAttempt",
    "Session",
    "SessionEvent",
    "SessionInput",
    "SessionMessage",
    "SessionNote",
    "SetupLink",
    "Tombstone",
    "ToolOverflow",
    "Worker",
]
