"""Looking at what is stored. Nothing that services own can be changed here; the few acts are named verbs."""

from django.contrib import admin

from sessions_app.admin import access, attempts, catalog, queue, sessions, transcript, workers

admin.site.site_header = admin.site.site_title = "Holdfast"
admin.site.index_title = "What there is to see and to do"

__all__ = ["access", "attempts", "catalog", "queue", "sessions", "transcript", "workers"]
