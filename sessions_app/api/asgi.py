"""The API's own way from ASGI to a response: through the same views, by fewer threads and less middleware.

Django's handler starts two threads for every request, to tell of its beginning and its end, so that the
connections of the request's thread are closed. The API's database work has threads of its own, which see
to their connections themselves (``threads``): nobody needs to be told.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from django.utils.module_loading import import_string

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class ApiHandler(ASGIHandler):
    """Made once, after Django is set up, and mounted for the addresses of the API."""

    def load_middleware(self, is_async: bool = True) -> None:
        """HOLDFAST_API_MIDDLEWARE, all of it asynchronous and with no hook but the call itself.

        What one refuses is a response to those around it, as in Django, so that it gets their headers.
        """
        answer = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]
        for name in reversed(settings.HOLDFAST_API_MIDDLEWARE):
            answer = convert_exception_to_response(import_string(name)(answer))
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._middleware_chain = answer

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        set_script_prefix(scope.get("root_path") or "/")
        request, refusal = self.create_request(scope, body)
        # A middleware may still ask for a thread; it lives only as long as this context.
        async with ThreadSensitiveContext():
            await self._serve(request, refusal, receive, send)

    async def read_body(self, receive: Receive) -> io.BytesIO:
        """The whole body, in memory: ``live.inbound`` lets none through that is long.

        Nobody closes it. A thread may go on with the request of a client that has left. Raises RequestAborted.
        """
        body = io.BytesIO()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestAborted
            body.write(message.get("body", b""))
            more = message.get("more_body", False)
        body.seek(0)
        return body

    async def _serve(
        self, request: HttpRequest | None, refusal: HttpResponseBase | None, receive: Receive, send: Send
    ) -> None:
        """Answer, unless the client leaves first: then what is being done for it is cancelled."""
        answering = asyncio.ensure_future(self._answer(request, refusal, send))
        leaving = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not answering.done():
                answering.cancel()
        try:
            await answering
        except asyncio.CancelledError:
            pass

    async def _answer(
        self, request: HttpRequest | None, refusal: HttpResponseBase | None, send: Send
    ) -> None:
        response = refusal if request is None else await self.run_get_response(request)
        assert response is not None
        if _used_a_thread(request):
            await sync_to_async(close_old_connections)()
        await self.send_response(response, send)


def _used_a_thread(request: HttpRequest | None) -> bool:
    """Whether the session middleware saved something, on a connection that nobody else closes."""
    session = getattr(request, "session", None)
    return session is not None and session.modified
