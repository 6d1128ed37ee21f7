"""What callers may ask for. Every door (API, socket, page, admin, command) calls these verbs."""

from sessions_app.agents import AgentChoice, agents
from sessions_app.sessions.approve import answer_call
from sessions_app.sessions.create import Creation, create
from sessions_app.sessions.delete import delete
from sessions_app.sessions.find import (
    attempts_of,
    calls_of,
    get,
    listed,
    messages_of,
    prompts_of,
    with_contents,
)
from sessions_app.sessions.interrupt import interrupt
from sessions_app.sessions.prompt import change_delivery, prompt, withdraw
from sessions_app.sessions.resume import resume
from sessions_app.sessions.revert import edit_and_resend
from sessions_app.sessions.shapes import (
    OpenPart,
    attempt_shape,
    attempt_shapes,
    event_shape,
    message_shapes,
    open_parts,
    prompt_shape,
    session_shape,
    tool_call_shape,
)
from sessions_app.sessions.status import get_status, statuses
from sessions_app.sessions.update import update

__all__ = [
    "AgentChoice",
    "Creation",
    "OpenPart",
    "agents",
    "answer_call",
    "attempt_shape",
    "attempt_shapes",
    "attempts_of",
    "calls_of",
    "change_delivery",
    "create",
    "delete",
    "edit_and_resend",
    "event_shape",
    "get",
    "get_status",
    "interrupt",
    "listed",
    "message_shapes",
    "messages_of",
    "open_parts",
    "prompt",
    "prompt_shape",
    "prompts_of",
    "resume",
    "session_shape",
    "statuses",
    "tool_call_shape",
    "update",
    "with_contents",
    "withdraw",
]
