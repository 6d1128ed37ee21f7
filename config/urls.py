"""Which package answers which path."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin.site.urls)]
for _module, _prefix in (("sessions_app.api", "api/v1/"), ("sessions_app.web", "")):
    if find_spec(_module) and find_spec(f"{_module}.urls"):
        urlpatterns.append(path(_prefix, include(f"{_module}.urls")))
