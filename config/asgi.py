"""The ASGI application: HTTP (with server-sent events) through Django, WebSockets through Channels."""

import os
import sys
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
_site = get_asgi_application()

# What follows needs the apps that the line above has loaded.
from config.proxies import Forwarded  # noqa: E402
from sessions_app.api.asgi import ApiHandler  # noqa: E402
from sessions_app.live import inbound, routing, serving  # noqa: E402

_api = ApiHandler()

if "daphne.server" in sys.modules:
    inbound.bound()


async def _http(scope: Any, receive: Any, send: Any) -> None:
    answer = _api if scope["path"].startswith("/api/v1/") else _site
    await answer(scope, receive, send)


_routed = ProtocolTypeRouter(
    {"http": _http, "websocket": AuthMiddlewareStack(URLRouter(routing.websocket_urlpatterns))}
)
application = serving.Serving(Forwarded(_routed, proxies=settings.HOLDFAST_PROXIES))
