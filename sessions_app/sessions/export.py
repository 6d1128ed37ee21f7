"""A session as a file: lossless JSON, or Markdown to read.

Both are made piece by piece, each piece by queries of its own: a session of any length takes the memory
of its longest piece, and a reader that goes away leaves nothing open.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import connection
from django.db.models import Model

from sessions_app import log
from sessions_app.log.read import MAX_PAGE
from sessions_app.models import (
    ProviderAttempt,
    Session,
    SessionEvent,
    SessionInput,
    SessionMessage,
    SessionNote,
    ToolOverflow,
)
from sessions_app.sessions import find, shapes

if TYPE_CHECKING:
    from django.db.models import QuerySet

Format = Literal["json", "markdown"]
Shape = dict[str, Any]

SUFFIXES: Final[dict[Format, str]] = {"json": "json", "markdown": "md"}
VERSION: Final = 1
_PAGE: Final = 50
_BYTES: Final = 3 * 64 * 1024
"""A multiple of three, so that pieces of base64 join."""
_OVERFLOW: Final = f"SELECT substr(content, %s, %s) FROM {ToolOverflow._meta.db_table} WHERE id = %s"  # noqa: S608, SLF001


def write(session: Session, *, form: Format, now: datetime) -> Iterator[str]:
    """The pieces of the file. What is stored while they are made may be in them or not, events up to the
    ``head_seq`` of ``session`` surely are."""
    return _json(session, now=now) if form == "json" else _markdown(session, now=now)


def file_name(session: Session, form: Format) -> str:
    return f"holdfast-{session.pk}.{SUFFIXES[form]}"


# JSON


def _json(session: Session, *, now: datetime) -> Iterator[str]:
    head = {
        "format": "holdfast-session",
        "version": VERSION,
        "exported_at": shapes.rfc3339(now),
        "session": _session(session),
    }
    yield _dump(head)[:-1]
    for name, items in _lists(session):
        yield f',"{name}":['
        yield from _joined(items)
        yield "]"
    yield ',"overflows":['
    yield from _overflows(session)
    yield "]}\n"


def _lists(session: Session) -> Iterator[tuple[str, Iterator[Shape]]]:
    yield "events", _events(session)
    yield "prompts", (shapes.prompt_shape(row) for row in _pages(session.inputs.all(), "admitted_seq"))
    yield "messages", _messages(session)
    yield "attempts", _attempts(session)
    yield "claims", _claims(session)
    yield "notes", _notes(session)


def _session(session: Session) -> Shape:
    return {
        "id": session.pk,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "recovery_policy": session.recovery_policy or None,
        "archived": session.archived,
        "pinned": session.pinned,
        "staged_revert": session.staged_revert or None,
        "created_at": shapes.rfc3339(session.created_at),
        "active_at": shapes.rfc3339(session.active_at),
        "head_seq": session.head_seq,
        "usage": shapes.usage_shape(session),
    }


def _events(session: Session) -> Iterator[Shape]:
    after = 0
    while page := log.events_after(session.pk, after=after, limit=min(MAX_PAGE, _PAGE)):
        for event in page:
            if event.seq > session.head_seq:
                return
            yield event.to_json()
        after = page[-1].seq


def _messages(session: Session) -> Iterator[Shape]:
    """Hidden ones too, each with the position at which it was hidden."""
    for page in _paged(find.with_contents(SessionMessage.objects.filter(session_id=session.pk)), "seq"):
        for message, shape in zip(page, shapes.message_shapes(page), strict=True):
            yield {**shape, "reverted_seq": message.reverted_seq}


def _attempts(session: Session) -> Iterator[Shape]:
    rows = ProviderAttempt.objects.filter(session_id=session.pk)
    for page in _paged(rows, "pk"):
        for attempt, shape in zip(page, shapes.attempt_shapes(page), strict=True):
            yield {**shape, "facts": shapes.attempt_facts(attempt)}


def _claims(session: Session) -> Iterator[Shape]:
    """As their events tell them, with the time of each."""
    rows = SessionEvent.objects.filter(session_id=session.pk, type="recovery.claimed")
    for event in _pages(rows, "seq"):
        yield {"seq": event.seq, "at": shapes.rfc3339(event.time), **event.data}


def _notes(session: Session) -> Iterator[Shape]:
    for note in _pages(SessionNote.objects.filter(session_id=session.pk), "pk"):
        yield {"name": note.name, "text": note.text, "updated_at": shapes.rfc3339(note.updated_at)}


def _overflows(session: Session) -> Iterator[str]:
    """Each whole output that its call does not hold, in base64."""
    rows = ToolOverflow.objects.filter(session_id=session.pk).defer("content")
    for number, row in enumerate(_pages(rows, "pk")):
        about = {"id": row.pk, "is_text": row.is_text, "created_at": shapes.rfc3339(row.created_at)}
        yield f'{"," if number else ""}{_dump(about)[:-1]},"base64":"'
        for piece in content(row.pk):
            yield base64.b64encode(piece).decode("ascii")
        yield '"}'


def content(overflow_id: str) -> Iterator[bytes]:
    """A stored output in pieces."""
    position = 1
    while piece := _piece(overflow_id, position):
        yield piece
        position += _BYTES


def _piece(overflow_id: str, position: int) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute(_OVERFLOW, [position, _BYTES, overflow_id])
        row = cursor.fetchone()
    return bytes(row[0]) if row is not None and row[0] else b""


def _joined(items: Iterable[Shape]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield f"{',' if number else ''}{_dump(item)}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pages(rows: "QuerySet[Any]", key: str) -> Iterator[Any]:
    for page in _paged(rows, key):
        yield from page


def _paged(rows: "QuerySet[Any]", key: str) -> Iterator[list[Any]]:
    """All rows in the order of a unique column, some at a time."""
    page: list[Model] = list(rows.order_by(key)[:_PAGE])
    while page:
        yield page
        last = getattr(page[-1], key)
        page = list(rows.filter(**{f"{key}__gt": last}).order_by(key)[:_PAGE]) if len(page) == _PAGE else []


# Markdown


def _markdown(session: Session, *, now: datetime) -> Iterator[str]:
    yield f"# {_line(session.title) or 'Untitled chat'}\n\n"
    yield f"Holdfast chat `{session.pk}`, model `{_line(session.model)}`, exported {shapes.rfc3339(now)}.\n"
    for page in _paged(find.messages_of(session), "seq"):
        for shape in shapes.message_shapes(page):
            yield _entry(shape)
    waiting = "".join(_prompt(row) for row in _pages(find.prompts_of(session), "admitted_seq"))
    if waiting:
        yield f"\n---\n\n## Waiting to be sent\n{waiting}"


def _entry(message: Shape) -> str:
    kind = message["type"]
    if kind == "assistant":
        return _answer(message)
    if kind in _SWITCHES:
        return f"\n---\n\n*{_SWITCHES[kind]} `{_line(message['model'] or message['agent'] or '')}`*\n"
    return f"\n---\n\n## {_SPEAKERS.get(kind, kind)} · {message['created_at']}\n\n{closed(message['text'] or '')}\n"


_SPEAKERS: Final = {"user": "You", "synthetic": "Holdfast", "system": "System"}
_SWITCHES: Final = {"model-switched": "Model:", "agent-switched": "Agent:"}


def _answer(message: Shape) -> str:
    head = f"\n---\n\n## Assistant · {_line(message['model'] or '')} · {message['created_at']}\n"
    return head + "".join(_PARTS[part["kind"]](part) for part in message["parts"]) + _end(message)


def _text(part: Shape) -> str:
    return f"\n{closed(part['text'])}\n" if part["text"] else ""


def _reasoning(part: Shape) -> str:
    return f"\n*Reasoning*\n\n{_quoted(part['text'])}\n" if part["text"] else ""


def _call(part: Shape) -> str:
    said = "outcome unknown" if part["unknown"] else part["state"]
    given = (
        part["raw_input"]
        if part["input"] is None
        else json.dumps(part["input"], indent=2, ensure_ascii=False)
    )
    text = f"\n*Tool* `{_line(part['name'])}`: {said}\n\n{fenced(given)}\n"
    result = part["error"] if part["output"] is None else part["output"]
    if result:
        text += f"\n{fenced(result)}\n"
    return text + _decision(part["decision"])


def _decision(decision: Shape | None) -> str:
    if decision is None:
        return ""
    reason = f": {_line(decision['reason'])}" if decision.get("reason") else ""
    return f"\n*Decided: {decision['action']}, by {_line(decision['by'])}, {decision['at']}{reason}*\n"


def _end(message: Shape) -> str:
    if message["state"] == "completed":
        return ""
    reason = _line((message["error"] or {}).get("message", ""))
    return f"\n*{message['state'].capitalize()}{': ' + reason if reason else ''}*\n"


_PARTS: Final[dict[str, Callable[[Shape], str]]] = {"text": _text, "reasoning": _reasoning, "tool": _call}


def _prompt(row: SessionInput) -> str:
    return f"\n*{row.delivery}*\n\n{closed(row.text)}\n"


def _line(text: str) -> str:
    """On one line, so that it ends no heading and begins no block."""
    return " ".join(text.split()).replace("`", "'")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def fenced(text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def closed(text: str) -> str:
    """The text as it is; a code block that was cut before its end is closed, or it would swallow the rest."""
    opened = ""
    for line in text.splitlines():
        fence = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if fence is None:
            continue
        if not opened:
            opened = fence[1]
        elif fence[1].startswith(opened) and not fence[2].strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text
