"""What the web process needs around its ASGI application for the live stream.

    application = serving.Serving(ProtocolTypeRouter({...}))

The first request of any kind makes this loop the hub of the embedded layer, so that workers find it before
anybody reads. And sending waits for the client: daphne by itself takes whatever it is given into memory.
"""

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from django.conf import settings

from sessions_app import figures
from sessions_app.live import groups, publish, reads

logger = logging.getLogger(__name__)

FIGURES_SECONDS: Final = 5.0
SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes keeps the loop from going on, which lets go of the interpreter at every send."""
STALL_SECONDS: Final = 30.0
FIRST_LOOK_SECONDS: Final = 0.001
LAST_LOOK_SECONDS: Final = 0.05

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Serving:
    """Wraps the outermost ASGI application of the web process."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            await _start(loop)
        await self._application(scope, receive, _waiting_for_client(send))


async def _start(loop: asyncio.AbstractEventLoop) -> None:
    # What was imported stays for good: full collections need not look at it again and again.
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)
    publish.use_loop(loop)
    serve = getattr(groups.layer(), "serve", None)
    if callable(serve):
        await serve()
    if settings.HOLDFAST_ROLE == "web":
        _lasting.add(loop.create_task(_store_figures()))


async def _store_figures() -> None:
    """What this process counts joins what all count, for whichever host is asked."""
    while True:
        await asyncio.sleep(FIGURES_SECONDS)
        await reads.run(figures.store)


_lasting: Final[set["asyncio.Task[None]"]] = set()


def _waiting_for_client(send: Send) -> Send:
    """A ``send`` that returns once the client has taken most of what it was sent."""
    transport = _daphne_transport(send)
    if transport is None:
        return send

    async def send_and_wait(message: MutableMapping[str, Any]) -> None:
        await send(message)
        if transport.producerPaused:
            await _drained(transport)

    return send_and_wait


def _daphne_transport(send: Any) -> Any:
    """The Twisted transport behind daphne's ``send``; None under another server, which waits by itself.

    daphne gives each application ``partial(handle_reply, protocol)``. Twisted pauses the producer of a
    transport whose buffer is full, and says so in ``producerPaused``.
    """
    arguments = getattr(send, "args", ())
    transport = getattr(arguments[0], "transport", None) if arguments else None
    return transport if hasattr(transport, "producerPaused") else None


def _left(transport: Any) -> tuple[int, int]:
    """What changes whenever the kernel takes something from the transport's buffer."""
    return len(getattr(transport, "dataBuffer", b"")), getattr(transport, "offset", 0)


async def _drained(transport: Any) -> None:
    """Wait for the client; one that takes nothing for long is cut off."""
    loop = asyncio.get_running_loop()
    left: tuple[int, int] | None = None
    deadline, pause = 0.0, FIRST_LOOK_SECONDS
    while transport.producerPaused and transport.connected:
        before, left = left, _left(transport)
        if left != before:
            deadline = loop.time() + STALL_SECONDS
        elif loop.time() > deadline:
            logger.info("live.client.stalled")
            transport.abortConnection()
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_LOOK_SECONDS)
