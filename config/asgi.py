"""The ASGI application: HTTP (with server-sent events) through Django, WebSockets through Channels."""

import os
from importlib.util import find_spec

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
_http = get_asgi_application()

if find_spec("sessions_app.live") and find_spec("sessions_app.live.routing"):
    from sessions_app.live.routing import websocket_urlpatterns
else:
    websocket_urlpatterns = []

application = ProtocolTypeRouter(
    {"http": _http, "websocket": AuthMiddlewareStack(URLRouter(websocket_urlpatterns))}
)
