"""A site of one page, for tests that are about processes."""

from django.urls import path

from sessions_app.operations import health

urlpatterns = [path("healthz", health.alive)]
