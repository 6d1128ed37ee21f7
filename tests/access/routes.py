"""Every route but the admin's, with what is sent to it and what its owner gets. A new route must be named here."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.urls import URLPattern, URLResolver, get_resolver

API: Final = "api/v1/"
ADMIN: Final = "admin/"

Kind = Literal["own", "each", "staff", "public"]
"""own: of one user. each: for everybody who is signed in, of themselves. staff: beyond that. public: for all."""


@dataclass(frozen=True)
class Route:
    pattern: str
    """As the URL configuration writes it."""
    method: str
    kind: Kind
    status: int = 200
    """What those who may get."""
    body: dict[str, Any] = field(default_factory=dict)
    query: str = ""

    @property
    def address(self) -> str:
        """With the names of what goes in, in braces."""
        plain = self.pattern.replace("<str:", "{").replace("<int:", "{").replace(">", "}")
        return f"/{plain}{self.query}"

    def __str__(self) -> str:
        return f"{self.method} {self.pattern}{self.query}"


_SESSION: Final = f"{API}sessions/<str:session_id>"
_PROMPT: Final = f"{_SESSION}/prompts/<str:message_id>"

OF_THE_API: Final = (
    Route(f"{API}me", "GET", "each"),
    Route(f"{API}models", "GET", "each"),
    Route(f"{API}agents", "GET", "each"),
    Route(f"{API}schema", "GET", "each"),
    Route(f"{API}docs", "GET", "each"),
    Route(f"{API}sessions", "GET", "each"),
    Route(f"{API}sessions", "POST", "each", 201),
    Route(f"{API}attempts", "GET", "each"),
    Route(f"{API}attempts", "GET", "own", query="?session={session_id}"),
    Route(f"{API}tool-calls", "GET", "each"),
    Route(f"{API}tool-calls", "GET", "own", query="?session={session_id}"),
    Route(f"{API}recovery/claims", "GET", "each"),
    Route(f"{API}recovery/claims", "GET", "own", query="?session={session_id}"),
    Route(f"{API}recovery/claims", "GET", "staff", query="?all=true"),
    Route(_SESSION, "GET", "own"),
    Route(_SESSION, "PATCH", "own", body={"title": "another"}),
    Route(_SESSION, "DELETE", "own", 204),
    Route(f"{_SESSION}/prompts", "GET", "own"),
    Route(f"{_SESSION}/prompts", "POST", "own", 201, {"text": "Hello"}),
    Route(_PROMPT, "PATCH", "own", body={"delivery": "queue"}),
    Route(_PROMPT, "DELETE", "own", 204),
    Route(f"{_SESSION}/messages", "GET", "own"),
    Route(f"{_SESSION}/events", "GET", "own"),
    Route(f"{_SESSION}/status", "GET", "own"),
    Route(f"{_SESSION}/wait", "POST", "own", body={"timeout": 0}),
    Route(f"{_SESSION}/resume", "POST", "own", 202),
    Route(f"{_SESSION}/interrupt", "POST", "own", 202),
    Route(f"{_SESSION}/stream", "GET", "own"),
    Route(f"{_SESSION}/ticket", "POST", "own", 201),
    Route(f"{_SESSION}/compact", "POST", "own", 501),
    Route(f"{_SESSION}/revert", "POST", "own", 404, {"message_id": "msg_00000000"}),
    Route(f"{_SESSION}/revert", "DELETE", "own", 204),
    Route(f"{_SESSION}/export", "GET", "own"),
    Route(f"{API}attempts/<str:attempt_id>", "GET", "own"),
    Route(f"{API}attempts/<str:attempt_id>/decide", "POST", "own", body={"action": "abandon"}),
    Route(f"{API}attempts/<str:attempt_id>/reconcile", "POST", "own", 409),
    Route(f"{API}tool-calls/<str:call_id>", "GET", "own"),
    Route(f"{API}tool-calls/<str:call_id>/output", "GET", "own", 404),
    Route(f"{API}tool-calls/<str:call_id>/decide", "POST", "own", body={"action": "mark_done"}),
    Route(f"{API}tool-calls/<str:call_id>/reconcile", "POST", "own", 409),
    Route(API, "GET", "each", 404),
)

OF_THE_PAGES: Final = (
    Route("", "GET", "each"),
    Route("", "POST", "each", 302, {"text": "Hello"}),
    Route("chats", "GET", "each"),
    Route("s/<str:session_id>", "GET", "own"),
    Route("s/<str:session_id>/prompts", "POST", "own", 302, {"text": "Hello"}),
    Route("s/<str:session_id>/change", "POST", "own", 302, {"title": "another"}),
    Route("s/<str:session_id>/resend", "POST", "own", 302, {"replaces": "msg_00000000", "text": "x"}),
    Route("s/<str:session_id>/keep", "POST", "own", 302),
    Route("s/<str:session_id>/resume", "POST", "own", 302),
    Route("s/<str:session_id>/timeline", "GET", "own"),
    Route("s/<str:session_id>/delete", "GET", "own"),
    Route("s/<str:session_id>/delete", "POST", "own", 302),
    Route("attempts/<str:attempt_id>/decide", "POST", "own", 302, {"action": "abandon"}),
    Route("tool-calls/<str:call_id>/decide", "POST", "own", 302, {"action": "mark_done"}),
    Route("settings", "GET", "each"),
    Route("settings/looks", "POST", "each", 302, {"theme": "dark"}),
    Route("settings/password", "POST", "each", 422, {"old_password": "wrong"}),
    Route("settings/tokens", "POST", "each", 200, {"name": "another"}),
    Route("settings/tokens/<int:token_id>/revoke", "POST", "own", 302),
)

FOR_EVERYBODY: Final = (
    Route("healthz", "GET", "public"),
    Route("readyz", "GET", "public"),
    Route("sign-in", "GET", "public"),
    Route("sign-out", "POST", "public", 302),
    Route("first-run/<str:token>", "GET", "public", 410),
)

OPERATORS_ONLY: Final = ("metrics",)
"""Let in by a rule of its own; see the tests of operation."""


def all_patterns() -> Iterator[str]:
    """Every route that Django knows."""
    return _walk(get_resolver().url_patterns, "")


def _walk(patterns: "list[URLPattern | URLResolver]", prefix: str) -> Iterator[str]:
    for each in patterns:
        whole = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _walk(each.url_patterns, whole)
        else:
            yield whole
