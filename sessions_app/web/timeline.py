"""A chat's attempts as a timeline: each fact in the order in which it became durable, tools and decisions too."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from schema.problems import SessionNotFound
from sessions_app import sessions
from sessions_app.models import MessagePart, Session, SessionEvent, SessionMessage
from sessions_app.sessions import shapes
from sessions_app.web import calls, cards, spending
from sessions_app.web.headers import page

PAGE: Final = 300
SHOWN_CHARACTERS: Final = 2000
"""Of the data of one fact; the API holds all of it."""

FACTS: Final[dict[str, tuple[str, str]]] = {
    "step.started": ("plain", "Step {step}: {model} is to be asked"),
    "attempt.prepared": ("plain", "Attempt {ordinal} prepared for {purpose}"),
    "attempt.dispatched": ("plain", "About to be sent"),
    "attempt.response_started": ("plain", "The provider answers with status {status}"),
    "attempt.identified": ("plain", "The provider named its response {provider_response_id}"),
    "attempt.first_output": ("plain", "First output"),
    "attempt.settled": ("plain", "Attempt {outcome}{used}"),
    "attempt.unknown": ("unknown", "Outcome unknown: {error_message}{used}"),
    "attempt.asked": ("unknown", "The provider was asked and could not tell"),
    "attempt.resumed": ("done", "The provider was asked and tells: the answer goes on"),
    "attempt.decided": ("decision", "{decided}"),
    "retry.scheduled": ("plain", "Attempt {attempt} is due at {at}: {reason}"),
    "step.ended": ("done", "Step complete"),
    "step.failed": ("failed", "Step {outcome}: {error_message}"),
    "tool.input.started": ("plain", "{name} is called for"),
    "tool.approval_requested": ("decision", "{name} waits for a person"),
    "tool.approval_decided": ("decision", "{name}: {decided}"),
    "tool.called": ("plain", "{name} entered"),
    "tool.succeeded": ("done", "{name} returned"),
    "tool.failed": ("failed", "{name} failed: {error}"),
    "tool.decided": ("decision", "{name}: {decided}"),
    "execution.interrupted": ("plain", "Interrupted: {reason}"),
    "recovery.claimed": ("unknown", "Recovered after its worker was lost: {outcome}"),
    "revert.staged": ("plain", "A part of the conversation is about to be hidden"),
    "revert.cleared": ("plain", "Nothing is hidden after all"),
    "revert.committed": ("plain", "A part of the conversation is hidden"),
}
"""Which events are facts of the timeline, their mark and their words."""

_SETTLED_MARKS: Final = {"completed": "done", "failed": "failed", "interrupted": "plain", "not_sent": "plain"}
_LONGEST_WORDS: Final = 300

signed_in = login_required(login_url="web:sign-in")


@dataclass(frozen=True, kw_only=True)
class Fact:
    seq: int
    time: datetime
    mark: str
    """plain, done, unknown, failed or decision: its shape and colour."""
    words: str
    data: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """The facts of one answer that follow one another; without a message, those of the chat itself."""

    message: str
    model: str = ""
    state: str = ""
    is_hidden: bool = False
    facts: list[Fact] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    session: Session
    groups: list[Group]
    earlier: int | None
    """The seq before which there are more facts."""
    is_newest: bool

    @property
    def spent(self) -> str:
        return spending.of_session(self.session)


@page
@signed_in
@require_GET
def show(request: HttpRequest, session_id: str) -> HttpResponse:
    before = request.GET.get("before", "")
    try:
        timeline = read(
            user_id=cast("User", request.user).pk,
            session_id=session_id,
            before=int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        )
    except SessionNotFound:
        return render(request, "404.html", status=404)
    return render(request, "chat/timeline.html", {"timeline": timeline})


def read(*, user_id: int, session_id: str, before: int | None = None) -> Timeline:
    """The newest facts, or those before a seq, with a fixed number of statements. Raises SessionNotFound."""
    session = sessions.get(user_id=user_id, session_id=session_id)
    rows = SessionEvent.objects.filter(session_id=session.pk, type__in=FACTS).order_by("-seq")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    found = list(rows[: PAGE + 1])
    events = found[:PAGE][::-1]
    return Timeline(
        session=session,
        groups=_groups(events, names=_names(events), messages=_messages(events)),
        earlier=events[0].seq if len(found) > PAGE else None,
        is_newest=before is None,
    )


def _names(events: Iterable[SessionEvent]) -> Mapping[str, str]:
    """The tools' names, by part."""
    parts = {event.data["part"] for event in events if "part" in event.data}
    return dict(MessagePart.objects.filter(pk__in=parts).values_list("pk", "name"))


def _messages(events: Iterable[SessionEvent]) -> Mapping[str, SessionMessage]:
    wanted = {event.data.get("message") for event in events}
    return SessionMessage.objects.filter(type="assistant").in_bulk([each for each in wanted if each])


def _groups(
    events: Sequence[SessionEvent],
    *,
    names: Mapping[str, str],
    messages: Mapping[str, SessionMessage],
) -> list[Group]:
    found = []
    for message_id, members in groupby(events, key=lambda event: event.data.get("message") or ""):
        facts = [_fact(event, name=names.get(event.data.get("part", ""), "")) for event in members]
        message = messages.get(message_id)
        if message is None:
            found.append(Group(message="", facts=facts))
        else:
            found.append(
                Group(
                    message=message_id,
                    model=message.model,
                    state=message.state,
                    is_hidden=message.reverted_seq is not None,
                    facts=facts,
                )
            )
    return found


def _fact(event: SessionEvent, *, name: str) -> Fact:
    mark, phrase = FACTS[event.type]
    said = _Said({**event.data, "name": event.data.get("name") or name or "a tool"})
    said["error_message"] = _message_of(event.data.get("error"))
    said["decided"] = _decided(event.data)
    said["used"] = _used(event)
    return Fact(
        seq=event.seq,
        time=event.time,
        mark=_mark(event) or mark,
        words=phrase.format_map(said)[:_LONGEST_WORDS],
        data=calls.formatted(event.data)[:SHOWN_CHARACTERS],
    )


def _mark(event: SessionEvent) -> str:
    """What the data says more exactly than the type does."""
    if event.type == "attempt.settled":
        return _SETTLED_MARKS.get(event.data["outcome"], "")
    if event.type == "step.failed" and event.data["outcome"] != "failed":
        return "unknown" if event.data["outcome"] == "unknown" else "plain"
    return "unknown" if event.type == "tool.failed" and event.data["unknown"] else ""


def _message_of(error: object) -> str:
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def _used(event: SessionEvent) -> str:
    if event.type not in ("attempt.settled", "attempt.unknown"):
        return ""
    said = spending.of_attempt(event.data)
    return said and f" · {said}"


def _decided(data: Mapping[str, Any]) -> str:
    """Who chose what, and why; empty for events that decide nothing."""
    if "action" not in data:
        return ""
    decision: shapes.Shape = {"policy": data.get("policy", False), **data}
    reason = data.get("reason")
    said = cards.title(decision)
    return f"{said} · {reason}" if reason and not decision["policy"] else said


class _Said(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""
