"""The one base of all endpoints: who asks, whose resource, then the rest of the request."""

import logging
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, Final

from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework import exceptions, parsers, permissions, renderers
from rest_framework.views import APIView

from schema.ids import is_client_session_id
from schema.problems import Problem, SessionNotFound
from sessions_app.access.rates import Standing
from sessions_app.api import answers, authentication, bodies, files, problems, threads, throttling
from sessions_app.api.openapi import Described
from sessions_app.api.operation import Operation, operation_of
from sessions_app.sessions.belongs import belongs

logger = logging.getLogger(__name__)

Answer = HttpResponseBase | Coroutine[Any, Any, HttpResponseBase]
"""A response, or work that goes on without a thread until there is one."""

_METHODS: Final = ("GET", "POST", "PATCH", "DELETE")


class Endpoint(APIView):
    """An address of the API. The handler of a method runs in a thread and returns its Answer.

    The order is part of the contract: who asks (401), how often (429), whether the resource is theirs (404), and only then
    method (405), wanted type (406) and body.
    """

    authentication_classes = (authentication.TokenAuthentication, authentication.WebSession)
    permission_classes = (permissions.IsAuthenticated,)
    renderer_classes = (renderers.JSONRenderer,)
    parser_classes = (parsers.JSONParser,)
    throttle_classes = (throttling.PerUser, throttling.PerToken)
    view_is_async = True
    standing: Standing | None = None
    """Where the caller stands, once they have been counted."""
    produces: ClassVar[str] = answers.JSON
    missing: ClassVar[tuple[type[Problem], ...]] = ()
    """What ``find_resource`` raises."""
    schema = Described()

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        answer = await threads.in_thread(self._answer)(request, kwargs)
        response = await self._finish(answer) if isinstance(answer, Coroutine) else answer
        throttling.tell(response, self.standing)
        return response

    def find_resource(self, names: Mapping[str, str]) -> None:
        """Look for what the address names. Raises its NotFound when it does not exist for this user."""

    @property
    def user_id(self) -> int:
        user_id = self.request.user.pk
        assert user_id is not None
        return user_id

    def _answer(self, request: HttpRequest, names: dict[str, str]) -> Answer:
        try:
            self._enter(request, names)
            handler = self._handler()
            answer: Answer = handler(**names, **self._given(operation_of(handler)))
        except Exception as error:  # noqa: BLE001
            return self._refuse(error)
        return answer

    async def _finish(self, work: Coroutine[Any, Any, HttpResponseBase]) -> HttpResponseBase:
        try:
            return await work
        except Exception as error:  # noqa: BLE001
            return self._refuse(error)

    def _enter(self, request: HttpRequest, names: dict[str, str]) -> None:
        self.kwargs = names
        self.request = self.initialize_request(request, **names)
        self.perform_authentication(self.request)
        self.check_permissions(self.request)
        self.check_throttles(self.request)
        self.find_resource(names)

    def _handler(self) -> Any:
        method = "GET" if self.request.method == "HEAD" else self.request.method or ""
        if method not in _METHODS or not hasattr(self, method.lower()):
            raise exceptions.MethodNotAllowed(method[:20])
        if self.produces != files.ANY and not self.request.accepts(self.produces):
            raise exceptions.NotAcceptable(f"This address answers with {self.produces} only.")
        return getattr(self, method.lower())

    def _given(self, wanted: Operation) -> dict[str, Any]:
        """What the request holds, read as the operation wants it."""
        given: dict[str, Any] = {}
        query = bodies.read_query(self.request, wanted.query)
        if wanted.query is not bodies.NoQuery:
            given["query"] = query
        if wanted.body is not None:
            body = bodies.read(self.request, wanted.body)
            if wanted.body is not bodies.Nothing:
                given["body"] = body
        return given

    def _refuse(self, error: Exception) -> HttpResponse:
        problem = problems.find(error)
        if problem is None:
            logger.error("api.failed", exc_info=error, extra={"view": type(self).__name__})
            got_request_exception.send(sender=type(self), request=self.request)
            problem = problems.unexpected()
        response = problems.render(problem)
        if problem.status == 401:
            response["WWW-Authenticate"] = self.get_authenticate_header(self.request)
        if problem.status == 405:
            response["Allow"] = ", ".join(self.allowed_methods)
        return response


class SessionEndpoint(Endpoint):
    """An address inside one session of the user."""

    missing: ClassVar[tuple[type[Problem], ...]] = (SessionNotFound,)

    def find_resource(self, names: Mapping[str, str]) -> None:
        require_session(names["session_id"], user_id=self.user_id)


def require_session(session_id: str, *, user_id: int) -> None:
    """Raises SessionNotFound for all but the user's own, also for what cannot be an id at all."""
    if not is_client_session_id(session_id) or not belongs(session_id, user_id=user_id):
        raise SessionNotFound(session_id)
