"""What a session is doing: look, wait, resume, interrupt."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from schema.status import SETTLED_STATES, Status
from sessions_app import sessions
from sessions_app.api import answers, bodies, problems, threads
from sessions_app.api.endpoint import SessionEndpoint

_FIRST_LOOK_SECONDS: Final = 0.1
_LAST_LOOK_SECONDS: Final = 1.0
_SLOWER: Final = 1.3


class SessionStatus(SessionEndpoint):
    def get(self, request: Request, session_id: str) -> HttpResponse:
        bodies.read_query(request, bodies.NoQuery)
        return answers.json(status_now(self.user_id, session_id).model_dump(mode="json"))


class Wait(SessionEndpoint):
    """Waiting holds neither a thread nor a connection."""

    def post(self, request: Request, session_id: str) -> Coroutine[Any, Any, HttpResponse]:
        body = bodies.read(request, bodies.Wait)
        return _wait(self.user_id, session_id, seconds=body.timeout)


class Resume(SessionEndpoint):
    def post(self, request: Request, session_id: str) -> HttpResponse:
        bodies.read(request, bodies.Nothing)
        resumed = sessions.resume(session_id=session_id, now=timezone.now())
        return _accepted(self.user_id, session_id, resumed=resumed)


class Interrupt(SessionEndpoint):
    def post(self, request: Request, session_id: str) -> HttpResponse:
        body = bodies.read(request, bodies.Interrupt)
        interrupted = sessions.interrupt(session_id=session_id, now=timezone.now(), resume=body.resume)
        return _accepted(self.user_id, session_id, interrupted=interrupted)


class Compact(SessionEndpoint):
    def post(self, request: Request, session_id: str) -> HttpResponse:
        raise problems.NotAvailable


def status_now(user_id: int, session_id: str) -> Status:
    """Raises SessionNotFound when it was deleted meanwhile."""
    session = sessions.get(user_id=user_id, session_id=session_id)
    return sessions.get_status(session, now=timezone.now())


def _accepted(user_id: int, session_id: str, **outcome: bool) -> HttpResponse:
    status = status_now(user_id, session_id).model_dump(mode="json")
    return answers.json({**outcome, "status": status}, status=202)


async def _wait(user_id: int, session_id: str, *, seconds: float) -> HttpResponse:
    look = threads.in_thread(status_now)
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    pause = _FIRST_LOOK_SECONDS
    while True:
        status = await look(user_id, session_id)
        left = deadline - clock()
        if status.state in SETTLED_STATES or left <= 0:
            return answers.json(status.model_dump(mode="json"))
        await asyncio.sleep(min(pause, left))
        pause = min(pause * _SLOWER, _LAST_LOOK_SECONDS)
