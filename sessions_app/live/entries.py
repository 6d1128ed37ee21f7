"""How a reader got in, and whether that still holds: a reader that has signed out is shown nothing more.

Who signs out is told at once, in every process. A telling may be lost, so every reader is looked at by itself, too.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError
from django.utils.crypto import constant_time_compare

from sessions_app.live import groups, publish, reads
from sessions_app.models import ApiToken, statements

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 60.0
KIND: Final = "entry"

Why = Literal["signed_out", "changed"]
"""``changed``: what let the reader in is not good any more; it may come again if something else lets it in."""

Leave = Callable[[Why], None]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Who reads, and by which web session or token; neither with a ticket that a browser asked for."""

    user_id: int
    session_key: str | None = None
    token_id: int | None = None


def holds(entry: Entry) -> bool:
    """Whether whoever came in this way could come in again."""
    user = statements.first(User, {"pk": entry.user_id, "is_active": True})
    if user is None:
        return False
    if entry.token_id is not None:
        return statements.exists(ApiToken, {"pk": entry.token_id, "revoked_at": None})
    return entry.session_key is None or _is_signed_in(user, entry.session_key)


def _is_signed_in(user: User, session_key: str) -> bool:
    """Whether the web session is there and its user has kept the password since."""
    stored = import_module(settings.SESSION_ENGINE).SessionStore(session_key).load()
    return stored.get(SESSION_KEY) == str(user.pk) and constant_time_compare(
        stored.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()
    )


# Telling


def signed_out(*, user_id: int, session_key: str) -> None:
    """This web session ends now, in this moment or the next."""
    publish.post(groups.of_entries(), {"type": KIND, "user": user_id, "session": groups.of_web(session_key)})


def changed(user_id: int) -> None:
    """The user, or a token of theirs, is not what it was: readers of this user are looked at."""
    publish.post(groups.of_entries(), {"type": KIND, "user": user_id})


# Hearing


@dataclass(eq=False)
class _Guard:
    entry: Entry
    leave: Leave

    def heard(self, session: object) -> None:
        if session is None:
            _lookings.add(looking := asyncio.ensure_future(self.look()))
            looking.add_done_callback(_lookings.discard)
        elif self.entry.session_key is not None and session == groups.of_web(self.entry.session_key):
            self.leave("signed_out")

    async def look(self) -> None:
        try:
            if not await reads.run(holds, self.entry):
                self.leave("changed")
        except (DatabaseError, InterfaceError) as error:
            logger.warning("live.entry.not_looked_at", extra={"error": type(error).__name__})

    async def look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load
            await self.look()


_guards: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, set[_Guard]]]] = WeakKeyDictionary()
_lookings: Final[set["asyncio.Future[None]"]] = set()


@asynccontextmanager
async def watched(entry: Entry, leave: Leave) -> AsyncIterator[None]:
    """While inside, ``leave`` is called on the running loop once the entry does not hold any more."""
    of_users = _guards.setdefault(asyncio.get_running_loop(), {})
    guard = _Guard(entry, leave)
    of_users.setdefault(entry.user_id, set()).add(guard)
    looking_on = asyncio.ensure_future(guard.look_on())
    try:
        yield
    finally:
        looking_on.cancel()
        of_users[entry.user_id].discard(guard)
        if not of_users[entry.user_id]:
            del of_users[entry.user_id]


def hear(packet: dict[str, Any]) -> None:
    """What the layer brings, on the running loop."""
    guards = _guards.get(asyncio.get_running_loop(), {}).get(packet.get("user", 0), ())
    for guard in list(guards):
        guard.heard(packet.get("session"))
