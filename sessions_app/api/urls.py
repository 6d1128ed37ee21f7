"""The addresses of the API, below /api/v1/."""

from django.urls import path, re_path

from sessions_app.api.endpoints import (
    attempts,
    calls,
    exporting,
    prompts,
    reading,
    reverting,
    running,
    sessions,
    site,
    streaming,
)

_SESSION = "sessions/<str:session_id>"

urlpatterns = [
    path("me", site.Me.as_view()),
    path("models", site.Models.as_view()),
    path("agents", site.Agents.as_view()),
    path("schema", site.Schema.as_view()),
    path("docs", site.Docs.as_view()),
    path("sessions", sessions.Sessions.as_view()),
    path(_SESSION, sessions.OneSession.as_view()),
    path(f"{_SESSION}/prompts", prompts.Prompts.as_view()),
    path(f"{_SESSION}/prompts/<str:message_id>", prompts.OnePrompt.as_view()),
    path(f"{_SESSION}/messages", reading.Messages.as_view()),
    path(f"{_SESSION}/events", reading.Events.as_view()),
    path(f"{_SESSION}/status", running.SessionStatus.as_view()),
    path(f"{_SESSION}/wait", running.Wait.as_view()),
    path(f"{_SESSION}/resume", running.Resume.as_view()),
    path(f"{_SESSION}/interrupt", running.Interrupt.as_view()),
    path(f"{_SESSION}/stream", streaming.Stream.as_view()),
    path(f"{_SESSION}/ticket", streaming.Ticket.as_view()),
    path(f"{_SESSION}/compact", running.Compact.as_view()),
    path(f"{_SESSION}/revert", reverting.Revert.as_view()),
    path(f"{_SESSION}/export", exporting.Export.as_view()),
    path("tool-calls", calls.ToolCalls.as_view()),
    path("tool-calls/<str:call_id>", calls.OneCall.as_view()),
    path("tool-calls/<str:call_id>/output", calls.CallOutput.as_view()),
    path("attempts", attempts.Attempts.as_view()),
    path("attempts/<str:attempt_id>", attempts.OneAttempt.as_view()),
    # Last: it answers for every address that is none.
    re_path(r"", site.Nowhere.as_view()),
]
