"""Which address is which socket."""

from typing import Any

from django.urls import re_path

from sessions_app.live.consumer import Nowhere, SessionConsumer

websocket_urlpatterns: list[Any] = [
    re_path(r"^ws/sessions/(?P<session_id>[^/]+)$", SessionConsumer.as_asgi()),
    re_path(r"", Nowhere.as_asgi()),
]
