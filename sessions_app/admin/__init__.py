"""Looking at what is stored. Nothing that services own can be changed here; the few acts are named verbs."""

from sessions_app.admin import access, attempts, catalog, queue, sessions, transcript, workers

__all__ = ["access", "attempts", "catalog", "queue", "sessions", "transcript", "workers"]
