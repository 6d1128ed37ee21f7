"""What a chat page shows, read with a fixed number of statements."""

from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

from schema.problems import SessionNotFound
from schema.status import Status
from sessions_app import sessions
from sessions_app.models import Session, SessionMessage
from sessions_app.web import calls, sidebar, turns, words

Shape = dict[str, Any]

MESSAGES: Final = 100
CHARACTERS: Final = 60_000
"""Of texts and calls on one page; the newest message is shown whatever its length."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """The sidebar, ready to render."""

    groups: list[sidebar.Group]
    older: str
    is_newest: bool
    query: str


@dataclass(frozen=True, kw_only=True)
class Chat:
    """A session as its page shows it.

    ``session.head_seq`` was read first: everything up to it is in here, and an event after it may be,
    so that a reader who goes on from there applies some events twice and misses none.
    """

    session: Session
    status: Shape
    messages: list[Shape]
    pending: list[Shape]
    earlier: int | None
    """The seq before which the page of earlier messages ends; None when there are none."""
    is_newest: bool
    pill: str
    note: str
    banner: turns.Banner
    elsewhere: list[Shape]
    """Cards of what is undecided and not in the messages of this page."""
    beside: Beside

    @property
    def pill_words(self) -> str:
        return words.PILLS.get(self.pill, "")

    @property
    def live(self) -> Shape:
        """What the scripts need and the page does not show as text."""
        return {
            "status": self.status,
            "pending": self.pending,
            "title": self.session.title,
            "agent": self.session.agent,
            "model": self.session.model,
            "recovery_policy": self.session.recovery_policy,
            "pinned": self.session.pinned,
            "archived": self.session.archived,
            "staged": self.session.staged_revert,
            "calls": self._calls(),
            "attempts": self._attempts(),
        }

    def _calls(self) -> Shape:
        parts = (part for message in self.messages for part in message["parts"])
        return {part["id"]: calls.facts(part) for part in parts if part["kind"] == "tool"}

    def _attempts(self) -> Shape:
        """The unknown attempts of each message that has some."""
        return {message["id"]: message["unknown"] for message in self.messages if message["unknown"]}

    def text_of(self, message_id: str) -> str:
        """What the user said in a message that the page shows; empty for any other."""
        said = (each for each in self.messages if each["id"] == message_id and each["type"] == "user")
        return next((str(each["text"]) for each in said), "")

    @property
    def last_question(self) -> str:
        """The newest message of the user on the page; empty when there is none."""
        return next((str(each["id"]) for each in reversed(self.messages) if each["type"] == "user"), "")

    @property
    def can_regenerate(self) -> bool:
        """Whether an answer stands at the end, nothing runs and nothing is to be decided first."""
        newest = self.messages[-1]["type"] if self.messages else ""
        return bool(self.status["state"] == "idle" and newest == "assistant" and self.last_question)

    @property
    def can_go_on(self) -> bool:
        """Whether the newest answer was stopped, so that the model may be asked to go on with it."""
        return self.can_regenerate and self.messages[-1]["state"] == "interrupted"

    @property
    def again(self) -> str:
        """What it is called to ask once more."""
        return words.again(self.messages[-1] if self.messages else None)

    @property
    def is_running(self) -> bool:
        return bool(self.status["state"] in ("busy", "retrying", "queued"))

    @property
    def has_tray(self) -> bool:
        """Whether what is pending waits above the composer, not at the end of the transcript."""
        return bool(self.status["state"] != "queued")


def beside(*, user_id: int, cursor: str, now: datetime, query: str = "") -> Beside:
    window = sidebar.read(user_id=user_id, cursor=cursor, query=query)
    return _beside(window, sessions.statuses([row.pk for row in window.all], now=now), now=now, query=query)


def read(
    *,
    user_id: int,
    session_id: str,
    now: datetime,
    before: int | None = None,
    cursor: str = "",
    query: str = "",
) -> Chat:
    """The newest messages of the session, or those before a seq. Raises SessionNotFound.

    Pending prompts are read before messages: one that is promoted in between is then in both, in
    neither it would be lost to the reader.
    """
    session = sessions.get(user_id=user_id, session_id=session_id)
    pending = [sessions.prompt_shape(prompt) for prompt in sessions.prompts_of(session)]
    messages, earlier = _messages(session, before=before)
    window = sidebar.read(user_id=user_id, cursor=cursor, query=query)
    statuses = sessions.statuses([session_id, *(row.pk for row in window.all)], now=now)
    if session.pk not in statuses:
        raise SessionNotFound(session_id)
    status = statuses[session.pk].model_dump(mode="json")
    shown = {message["id"] for message in messages}
    newest = messages[-1] if messages and before is None else None
    elsewhere = turns.elsewhere(session, status, messages) if before is None else []
    return Chat(
        session=session,
        status=status,
        messages=messages,
        pending=[prompt for prompt in pending if prompt["id"] not in shown],
        earlier=earlier,
        is_newest=before is None,
        pill=words.pill(status, newest) if before is None else "",
        note=words.session_note(status),
        banner=turns.banner(status, messages, elsewhere),
        elsewhere=elsewhere,
        beside=_beside(window, statuses, now=now, query=query),
    )


def _beside(window: sidebar.Window, statuses: dict[str, Status], *, now: datetime, query: str = "") -> Beside:
    return Beside(
        groups=sidebar.groups(window, statuses, today=now.date()),
        older=window.older,
        is_newest=window.is_newest,
        query=query,
    )


def _messages(session: Session, *, before: int | None) -> tuple[list[Shape], int | None]:
    """The newest messages that fit a page, in order, and the seq before which there are more."""
    rows = sessions.messages_of(session).order_by("-seq")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    found = list(rows[: MESSAGES + 1])
    shown = _fitting(found[:MESSAGES])
    shapes = turns.shapes(list(reversed(shown)), has_newest=before is None)
    return shapes, shown[-1].seq if len(found) > len(shown) else None


def _fitting(messages: list[SessionMessage]) -> list[SessionMessage]:
    """The first of the messages, which together are not too long for a page."""
    weights = accumulate(turns.weight(message) for message in messages)
    return [
        message
        for position, (message, so_far) in enumerate(zip(messages, weights, strict=True))
        if position == 0 or so_far <= CHARACTERS
    ]
