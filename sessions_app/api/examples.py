"""The examples of the OpenAPI document: one conversation, as it is asked for and answered."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from schema import status, views
from sessions_app.api import bodies

Shape = dict[str, Any]

_SESSION: Final = "ses_0191f6f3c4d2a8b0c1d2e3f4"
_MESSAGE: Final = "msg_0191f6f3c4e8a8b0c1d2e3f4"
_ANSWER: Final = "msg_0191f6f3c51fa8b0c1d2e3f4"
_ATTEMPT: Final = "att_0191f6f3c520a8b0c1d2e3f4"
_CALL: Final = "prt_0191f6f3c533a8b0c1d2e3f4"
_AT: Final = "2027-03-01T09:30:00.250000Z"

IDS: Final = {
    "session_id": _SESSION,
    "message_id": _MESSAGE,
    "attempt_id": _ATTEMPT,
    "call_id": _CALL,
}
"""By the name that they have in an address."""

_DECISION: Final[Shape] = {"action": "abandon", "by": "ann", "policy": False, "at": _AT}

GIVEN: Final[Mapping[str, Any]] = {
    **IDS,
    "subject": _ATTEMPT,
    "why": "its provider keeps no responses. Abandon it, or try again.",
    "decision": _DECISION,
    "detail": "Correct the request and send it again.",
    "errors": {"delivery": ["Input should be 'steer' or 'queue'."]},
    "text": "message 1",
    "size": 400_001,
    "limit": 400_000,
    "exhausted": "user",
    "retry_after": 12,
}
"""What problems are made from, by the name of the argument."""

_STATUS: Final[Shape] = {
    "state": "idle",
    "session": _SESSION,
    "head_seq": 12,
    "owner_alive": False,
    "owner_quiet_since": None,
    "pending": {"steer": 0, "queue": 0},
    "paused": False,
    "parked": False,
    "attempt": None,
    "retry": None,
    "unknown": {"attempts": [], "tools": []},
    "waiting": [],
}
_NEW_SESSION: Final[Shape] = {"id": _SESSION, "title": "Release notes", "model": "demo:scripted"}
_ROW: Final[Shape] = {
    "id": _SESSION,
    "title": "Release notes",
    "agent": "default",
    "model": "demo:scripted",
    "recovery_policy": None,
    "archived": False,
    "pinned": False,
    "staged_revert": None,
    "created_at": _AT,
    "active_at": _AT,
    "head_seq": 12,
    "usage": {"input_tokens": 21, "output_tokens": 7, "cost": 0.000112, "uncounted_attempts": 0},
}
_SESSION_SHAPE: Final[Shape] = {**_ROW, "status": _STATUS}
_NEW_PROMPT: Final[Shape] = {"id": _MESSAGE, "text": "What changed since 1.4?"}
_PROMPT: Final[Shape] = {
    "id": _MESSAGE,
    "session": _SESSION,
    "text": "What changed since 1.4?",
    "delivery": "steer",
    "origin": "user",
    "state": "pending",
    "wake": True,
    "admitted_seq": 2,
    "promoted_seq": None,
    "created_at": _AT,
}
_TEXT_PART: Final[Shape] = {
    "id": "prt_0191f6f3c540a8b0c1d2e3f4",
    "index": 1,
    "kind": "text",
    "state": "completed",
    "text": "Two things changed.",
}
_TOOL_PART: Final[Shape] = {
    "id": _CALL,
    "index": 0,
    "kind": "tool",
    "call_id": "call_1",
    "name": "send_webhook",
    "input": {"url": "https://example.org/hook"},
    "raw_input": '{"url": "https://example.org/hook"}',
    "effect": "side_effect",
    "hosted": False,
    "state": "error",
    "approval": None,
    "approval_reason": None,
    "earlier": None,
    "unknown": True,
    "progress": None,
    "output": None,
    "overflow": None,
    "error": "Tool execution interrupted",
    "decision": None,
    "can_be_asked": False,
    "text": "",
}
_TOOL_CALL: Final[Shape] = {**_TOOL_PART, "session": _SESSION, "message": _ANSWER}
_MESSAGE_SHAPE: Final[Shape] = {
    "id": _ANSWER,
    "seq": 4,
    "type": "assistant",
    "state": "completed",
    "created_at": _AT,
    "completed_at": _AT,
    "text": None,
    "model": "demo:scripted",
    "agent": "default",
    "finish": "stop",
    "error": None,
    "notice": None,
    "usage": {"input_tokens": 21, "output_tokens": 7},
    "attempts": [_ATTEMPT],
    "parts": [_TOOL_PART, _TEXT_PART],
}
_ERROR: Final[Shape] = {
    "error_class": "ambiguous",
    "reason": "crash",
    "message": "The server was interrupted after the request was sent; its outcome is unknown.",
}
_ATTEMPT_SHAPE: Final[Shape] = {
    "id": _ATTEMPT,
    "session": _SESSION,
    "message": _ANSWER,
    "purpose": "step",
    "ordinal": 1,
    "provider": "demo",
    "model": "scripted",
    "state": "unknown",
    "outcome": None,
    "finish": None,
    "error_class": "ambiguous",
    "error": _ERROR,
    "request_digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "client_request_id": _ATTEMPT,
    "provider_request_id": None,
    "provider_response_id": None,
    "may_be_billed": True,
    "usage": None,
    "prepared_at": _AT,
    "dispatched_at": _AT,
    "headers_at": None,
    "first_output_at": None,
    "settled_at": None,
    "unknown_at": _AT,
    "decision": None,
    "can_be_asked": False,
}
_WITH_FACTS: Final[Shape] = {
    **_ATTEMPT_SHAPE,
    "facts": [
        {"at": _AT, "fact": "dispatched", "detail": {"client_request_id": _ATTEMPT}},
        {"at": _AT, "fact": "unknown", "detail": {"error": _ERROR}},
    ],
}
_CLAIM: Final[Shape] = {
    "id": "clm_0191f6f3c560a8b0c1d2e3f4",
    "session": _SESSION,
    "boundary_seq": 9,
    "lost_fence": 1,
    "lost_owner": "wrk_0191f6f3c000a8b0c1d2e3f4",
    "worker": "wrk_0191f6f3d000a8b0c1d2e3f4",
    "death": "proved",
    "outcome": "continued",
    "found": {"attempts": 1, "tools": 0, "parts": 1},
    "continuation": "msg_rec-0191f6f3c560a8b0c1d2e3f4",
    "created_at": _AT,
}
_EVENT: Final[Shape] = {
    "seq": 3,
    "type": "prompt.promoted",
    "version": 1,
    "time": _AT,
    "data": {"message": _MESSAGE},
}


def _page(shape: Shape) -> Shape:
    return {"results": [shape], "next": None}


_BY_NAME: Final[Mapping[str, Shape]] = {
    views.Me.__name__: {"username": "ann", "is_staff": False},
    bodies.NewSession.__name__: _NEW_SESSION,
    bodies.SessionChange.__name__: {"title": "Release notes 1.5", "pinned": True},
    bodies.NewPrompt.__name__: _NEW_PROMPT,
    bodies.PromptChange.__name__: {"delivery": "queue"},
    bodies.Wait.__name__: {"timeout": 30},
    bodies.Interrupt.__name__: {"resume": False},
    bodies.Revert.__name__: {"message_id": _MESSAGE},
    "AttemptDecision": {"action": "abandon", "reason": "The bill shows nothing."},
    "CallDecision": {"action": "mark_done", "result": "It arrived."},
    status.Status.__name__: _STATUS,
    views.Session.__name__: _SESSION_SHAPE,
    views.SessionPage.__name__: _page(_SESSION_SHAPE),
    views.Prompt.__name__: _PROMPT,
    views.PromptPage.__name__: _page(_PROMPT),
    views.MessagePage.__name__: _page(_MESSAGE_SHAPE),
    views.EventPage.__name__: {"results": [_EVENT], "next_after": 3, "head_seq": 12},
    views.AttemptPage.__name__: _page(_ATTEMPT_SHAPE),
    views.AttemptWithFacts.__name__: _WITH_FACTS,
    views.ToolCall.__name__: _TOOL_CALL,
    views.ToolCallPage.__name__: _page(_TOOL_CALL),
    views.ClaimPage.__name__: _page(_CLAIM),
    views.ModelPage.__name__: _page(
        {
            "name": "openai:gpt-4.1",
            "label": "OpenAI gpt-4.1",
            "configured": True,
            "tools": True,
            "context_tokens": 1_047_576,
            "max_output_tokens": None,
            "prices": {"input": 2.0, "output": 8.0, "cache_read": 0.5},
        }
    ),
    views.AgentPage.__name__: _page({"name": "default", "model": "demo:scripted"}),
    views.Ticket.__name__: {"ticket": "eyJ1c2VyIjox:signature", "expires": _AT},
    views.Resumed.__name__: {"resumed": True, "status": {**_STATUS, "state": "queued"}},
    views.Interrupted.__name__: {"interrupted": False, "status": _STATUS},
    views.Export.__name__: {
        "format": "holdfast-session",
        "version": 1,
        "exported_at": _AT,
        "session": _ROW,
        "events": [_EVENT],
        "prompts": [_PROMPT],
        "messages": [{**_MESSAGE_SHAPE, "reverted_seq": None}],
        "attempts": [_WITH_FACTS],
        "claims": [],
        "notes": [],
        "overflows": [],
    },
}


def of(model: type[BaseModel] | type[str] | None) -> dict[str, Shape]:
    """The examples of a body or an answer, by name; a model that has none is left without."""
    shape = None if model is None else _BY_NAME.get(model.__name__)
    return {} if shape is None else {"example": shape}
