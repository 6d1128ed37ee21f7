"""The WebSocket of one session: one reader out, one verb per frame in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import parse_qs

from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from schema.problems import Problem, SessionNotFound, Throttled
from sessions_app.live import access, entries, origins, packets, reads, requests, tickets
from sessions_app.live.entries import Entry
from sessions_app.live.reader import Reader
from sessions_app.live.requests import BadRequest, InterruptRequest, PromptRequest, SyncRequest
from sessions_app.log import SessionGone

logger = logging.getLogger(__name__)

NOT_SIGNED_IN: Final = 4401
NOT_FOUND: Final = 4404
BAD_ADDRESS: Final = 4400
TOO_SLOW: Final = 4408
FAILED: Final = 1011

COME_AGAIN: Final = 1012

_END_CODES: Final = {
    "gone": NOT_FOUND,
    "slow": TOO_SLOW,
    "signed_out": NOT_SIGNED_IN,
    "changed": COME_AGAIN,
}


class SessionConsumer(AsyncWebsocketConsumer):  # type: ignore[misc,unused-ignore]
    """Needs no channel of its own: the switchboard listens for all readers of the process."""

    channel_layer_alias = None

    reader: Reader
    entry: Entry
    session_id: str
    _sending: asyncio.Task[None] | None = None

    async def __call__(
        self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._sending is not None:
                self._sending.cancel()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' hop to the shared thread before every message, where a slow query of anyone waits."""
        await getattr(self, get_handler_name(message))(message)

    # Joining

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        query = parse_qs(self.scope["query_string"].decode("latin1"), keep_blank_values=True)
        if not origins.is_allowed(self.scope["headers"], has_ticket="ticket" in query):
            await self.close()
            return
        await self.accept()
        self.session_id = self.scope["url_route"]["kwargs"]["session_id"]
        refused = await self._refusal(query)
        if refused is not None:
            await self.close(code=refused)
            return
        self.reader = Reader(self.session_id, after=_after(query) or 0)
        self._sending = asyncio.create_task(self._send_frames())

    async def _refusal(self, query: dict[str, list[str]]) -> int | None:
        """The code to close with, or None for a user's own session."""
        if _after(query) is None:
            return BAD_ADDRESS
        entry = self._entered(query)
        if entry is None or not await reads.run(entries.holds, entry):
            return NOT_SIGNED_IN
        self.entry = entry
        try:
            await reads.run(access.check, user_id=entry.user_id, session_id=self.session_id)
        except SessionNotFound:
            return NOT_FOUND
        return None

    @property
    def user_id(self) -> int:
        return self.entry.user_id

    def _entered(self, query: dict[str, list[str]]) -> Entry | None:
        """Who opens the socket. A ticket counts alone: one that is no good is not made good by a cookie."""
        if "ticket" in query:
            return tickets.redeem(query["ticket"][-1], session_id=self.session_id)
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            return None
        return Entry(user_id=user.pk, session_key=self.scope["session"].session_key)

    # Out

    async def _send_frames(self) -> None:
        try:
            watched = entries.watched(self.entry, self.reader.leave)
            async with watched, aclosing(self.reader.frames()) as frames:
                async for frame in frames:
                    await self.send(text_data=frame.text())
            await self.close(code=_END_CODES.get(self.reader.ended or "", FAILED))
        except Exception:
            logger.exception("live.socket.failed", extra={"session": self.session_id})
            await self.close(code=FAILED)

    async def _answer(self, frame: dict[str, Any]) -> None:
        await self.send(text_data=packets.to_json(frame))

    # In

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._sending is None:
            return
        try:
            request = requests.read(_text(text_data))
            await self._serve(request)
        except BadRequest as bad:
            await self._answer({"t": "error", "detail": str(bad)})
        except Throttled as throttled:
            await self._answer({"t": "error", "detail": throttled.detail})
        except (SessionNotFound, SessionGone):
            await self.close(code=NOT_FOUND)
        except (DatabaseError, InterfaceError):
            # The client sends the same id again once it is connected anew.
            logger.exception("live.socket.action_failed", extra={"session": self.session_id})
            await self.close(code=FAILED)

    async def _serve(self, request: requests.Request) -> None:
        match request:
            case PromptRequest():
                await self._prompt(request)
            case SyncRequest(after=after):
                await database_sync_to_async(access.spend, thread_sensitive=False)(self.user_id)
                self.reader.sync(after=after)
            case InterruptRequest():
                interrupted = await self._act(access.interrupt, request)
                await self._answer({"t": "interrupted", "interrupted": interrupted})

    async def _prompt(self, request: PromptRequest) -> None:
        try:
            admitted = await self._act(access.prompt, request)
        except SessionNotFound:
            raise
        except Problem as problem:
            refusal = {"t": "refused", "id": request.id, "code": problem.code, "detail": problem.detail}
            await self._answer(refusal)
        else:
            await self._answer({"t": "admitted", "prompt": admitted})

    async def _act(self, verb: Callable[..., Any], request: requests.Request) -> Any:
        """Call one verb on a thread that no reader waits for."""
        call = database_sync_to_async(verb, thread_sensitive=False)
        return await call(
            user_id=self.user_id, session_id=self.session_id, request=request, now=timezone.now()
        )


class Nowhere(AsyncWebsocketConsumer):  # type: ignore[misc,unused-ignore]
    """A socket to an address that does not exist is not accepted."""

    channel_layer_alias = None

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        await self.close()


def _after(query: dict[str, list[str]]) -> int | None:
    """The position to go on from; None when it is none."""
    text = query.get("after", ["0"])[-1]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _text(text_data: str | None) -> str:
    if text_data is None:
        raise BadRequest("Frames are text, not bytes.")
    return text_data
