"""The queue's own pages are taken away: whoever may add a schedule there could run any function."""

from typing import Final

from django.apps import apps
from django.contrib import admin

_QUEUE: Final = "django_q"

for _model in apps.get_app_config(_QUEUE).get_models(include_auto_created=True):
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)
