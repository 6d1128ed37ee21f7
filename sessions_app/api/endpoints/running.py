"""What a session is doing: look, wait, resume, interrupt."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from django.http import HttpResponse
from django.utils import timezone

from schema import views
from schema.status import SETTLED_STATES, Status
from sessions_app import sessions
from sessions_app.api import answers, bodies, problems, threads
from sessions_app.api.endpoint import SessionEndpoint
from sessions_app.api.operation import operation

_FIRST_LOOK_SECONDS: Final = 0.1
_LAST_LOOK_SECONDS: Final = 1.0
_SLOWER: Final = 1.3


class SessionStatus(SessionEndpoint):
    @operation("What the session is doing", answers={200: Status})
    def get(self, *, session_id: str) -> HttpResponse:
        return answers.json(status_now(self.user_id, session_id).model_dump(mode="json"))


class Wait(SessionEndpoint):
    """Waiting holds neither a thread nor a connection."""

    @operation(
        "Its status when nothing runs any more, or at the timeout", body=bodies.Wait, answers={200: Status}
    )
    def post(self, *, session_id: str, body: bodies.Wait) -> Coroutine[Any, Any, HttpResponse]:
        return _wait(self.user_id, session_id, seconds=body.timeout)


class Resume(SessionEndpoint):
    @operation(
        "Go on, or join what runs",
        description=(
            "A turn without a whole answer is asked about again, by a new attempt; then what waits runs. A turn that "
            "was answered is not answered again. Can be sent again."
        ),
        body=bodies.Nothing,
        answers={202: views.Resumed},
    )
    def post(self, *, session_id: str) -> HttpResponse:
        resumed = sessions.resume(session_id=session_id, now=timezone.now())
        return _accepted(self.user_id, session_id, resumed=resumed)


class Interrupt(SessionEndpoint):
    @operation(
        "Stop what runs",
        description=(
            "It means whatever runs when it arrives: sent again because no answer came, it may stop what began "
            "meanwhile. Look at the status first."
        ),
        body=bodies.Interrupt,
        answers={202: views.Interrupted},
    )
    def post(self, *, session_id: str, body: bodies.Interrupt) -> HttpResponse:
        interrupted = sessions.interrupt(session_id=session_id, now=timezone.now(), resume=body.resume)
        return _accepted(self.user_id, session_id, interrupted=interrupted)


class Compact(SessionEndpoint):
    @operation("Planned, not built yet", refusals=(problems.NotAvailable,))
    def post(self, *, session_id: str) -> HttpResponse:
        raise problems.NotAvailable


def status_now(user_id: int, session_id: str) -> Status:
    """Raises SessionNotFound when it was deleted meanwhile."""
    session = sessions.get(user_id=user_id, session_id=session_id)
    return sessions.get_status(session.pk, now=timezone.now())


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
