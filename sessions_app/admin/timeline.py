"""The log of one session, newest first, each event with what it concerns."""

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Model
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from sessions_app.admin.base import NOTHING, folded, link, table
from sessions_app.models import (
    MessagePart,
    ProviderAttempt,
    SessionEvent,
    SessionInput,
    SessionMessage,
    Worker,
)

SHOWN: Final = 50
"""Events of one page."""

CONCERNED: Final[dict[str, type[Model]]] = {
    "attempt": ProviderAttempt,
    "message": SessionMessage,
    "part": MessagePart,
    "worker": Worker,
    "continuation": SessionInput,
}
"""Fields of events that hold ids, each with where these lead. Who adds tables adds theirs."""

_OF_THE_INBOX: Final = ("prompt.admitted", "prompt.withdrawn", "prompt.delivery_changed")
_LARGEST: Final = 2**63 - 1


def page(session_id: str, *, before: int | None = None) -> tuple[list[SessionEvent], int | None]:
    """Events before a position, and the position that the following page is before; None on the last one."""
    rows = SessionEvent.objects.filter(session_id=session_id)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    found = list(rows.order_by("-seq")[: SHOWN + 1])
    return found[:SHOWN], found[SHOWN - 1].seq if len(found) > SHOWN else None


def read_position(text: str | None) -> int | None:
    """Raises IncorrectLookupParameters for what is none."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > _LARGEST:
        raise IncorrectLookupParameters
    return int(text)


def render(events: Iterable[SessionEvent]) -> SafeString:
    return table(
        ("seq", "time", "event", "concerns", "data"),
        (
            [link(event, str(event.seq)), event.time, event.type, _concerned(event), _rest(event)]
            for event in events
        ),
    )


def _concerned(event: SessionEvent) -> SafeString | str:
    links = [(link(model(pk=event.data[name])),) for name, model in _subjects(event) if event.data.get(name)]
    return format_html_join(" ", "{}", links) if links else NOTHING


def _rest(event: SessionEvent) -> SafeString | str:
    """The data without the ids that are links already."""
    rest = {name: value for name, value in event.data.items() if name not in CONCERNED}
    return folded(rest or None)


def _subjects(event: SessionEvent) -> Iterable[tuple[str, Any]]:
    for name, model in CONCERNED.items():
        is_input = name == "message" and event.type in _OF_THE_INBOX
        yield name, SessionInput if is_input else model
