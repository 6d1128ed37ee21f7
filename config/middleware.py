"""Django's middleware without a thread for each step of each request.

Under ASGI, Django sends every synchronous step of every middleware to a thread and back, which costs more than
the rest of a short request. Most of these steps only look at headers, so here they run where they are. Those
that may read or write the database go to a thread. Should one of the others ever try, Django refuses it
(SynchronousOnlyOperation), so that this cannot go wrong in silence.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Final, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class _Here:
    """Mixed into a middleware of Django: its steps run in the caller's thread, the event loop's."""

    get_response: Callable[[HttpRequest], Any]

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        before, after = (getattr(self, step, None) for step in ("process_request", "process_response"))
        response: HttpResponseBase | None = before(request) if before else None
        if response is None:
            response = await self.get_response(request)
        if after is None:
            return response
        if self.needs_thread(request):
            after = sync_to_async(after, thread_sensitive=True)
            return cast("HttpResponseBase", await after(request, response))
        return cast("HttpResponseBase", after(request, response))

    def needs_thread(self, request: HttpRequest) -> bool:
        """Whether the step after the view may use the database."""
        return False


class Security(_Here, SecurityMiddleware):
    pass


INSTRUMENTS: Final = ("/healthz", "/readyz", "/metrics")


class Common(_Here, CommonMiddleware):
    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        """Instruments ask by whatever name or address they reach this machine; no answer of theirs repeats it."""
        if request.path_info in INSTRUMENTS:
            return None
        return super().process_request(request)


class Authentication(_Here, AuthenticationMiddleware):
    pass


class XFrameOptions(_Here, XFrameOptionsMiddleware):
    pass


class Sessions(_Here, SessionMiddleware):
    def needs_thread(self, request: HttpRequest) -> bool:
        return request.session.modified


class Messages(_Here, MessageMiddleware):
    def needs_thread(self, request: HttpRequest) -> bool:
        messages = request._messages  # type: ignore[attr-defined]  # noqa: SLF001
        return bool(messages.used or messages.added_new)


class Csrf(_Here, CsrfViewMiddleware):
    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if self.async_mode:
            self.process_view = self._process_view_here  # type: ignore[assignment]

    async def _process_view_here(self, *args: Any) -> HttpResponseBase | None:
        return super().process_view(*args)


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise for both worlds. A file is small and read at once: no thread feeds it in pieces."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
            self.answer: Callable[[HttpRequest], Any] = self._answer_later
        else:
            self.answer = self._answer

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        answer: HttpResponseBase | Awaitable[HttpResponseBase] = self.answer(request)
        return answer

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        found = self._find(request)
        answer: HttpResponseBase = self.serve(found, request) if found else self.get_response(request)
        return answer

    async def _answer_later(self, request: HttpRequest) -> HttpResponseBase:
        found = self._find(request)
        if found:
            return await sync_to_async(self.serve, thread_sensitive=False)(found, request)
        answer: HttpResponseBase = await self.get_response(request)
        return answer

    def _find(self, request: HttpRequest) -> StaticFile | None:
        look = self.find_file if self.autorefresh else self.files.get
        return look(request.path_info)

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        with found.file or nullcontext() as file:
            response = HttpResponse(file.read() if file else b"", status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
