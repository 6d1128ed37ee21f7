"""Which package answers which path."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from sessions_app.operations import health, metrics

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("metrics", metrics.metrics),
    path("admin/", admin.site.urls),
    # The core's API answers every address below it, so other packages' parts come before.
    path("api/v1/", include("recovery.api.urls")),
    path("api/v1/", include("sessions_app.api.urls")),
    path("", include("recovery.web.urls")),
    path("", include("sessions_app.web.urls")),
]
