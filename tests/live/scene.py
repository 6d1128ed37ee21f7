"""A conversation written by hand: what a worker would store and tell, step by step, in any thread."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from schema import events
from schema.attempts import StepError
from sessions_app import identity, log, ownership, sessions
from sessions_app.live import publish
from sessions_app.models import PartCheckpoint, Session


def make_user(name: str = "") -> User:
    return User.objects.create_user(username=name or f"user-{uuid4().hex[:12]}", password="secret")


@dataclass
class Part:
    id: str
    message: str
    kind: str
    text: str = ""
    is_ended: bool = False


@dataclass
class Conversation:
    """One session and its owner. Every method commits what it says, and tells readers as the product does."""

    session_id: str
    user: User
    worker: ownership.Registration | None = None
    fence: int = 0
    message: str = ""
    parts: dict[str, Part] = field(default_factory=dict)

    @classmethod
    def start(cls, *, user: User | None = None, session_id: str | None = None) -> "Conversation":
        owner = user or make_user()
        created = sessions.create(user_id=owner.pk, session_id=session_id, now=timezone.now())
        return cls(session_id=created.session.pk, user=owner)

    def transaction(self) -> Any:
        return log.session_transaction(self.session_id, now=timezone.now())

    def append(self, *stored: events.EventData) -> None:
        with self.transaction() as tx:
            for event in stored:
                tx.append(event)

    def prompt(self, text: str = "Hello") -> str:
        message = identity.new_message_id()
        sessions.prompt(
            session_id=self.session_id, message_id=message, text=text, wake=False, now=timezone.now()
        )
        return message

    def acquire(self) -> None:
        self.worker = ownership.register(
            kind="worker", run_dir=settings.HOLDFAST_RUN_DIR, lease_seconds=20, now=timezone.now()
        )
        with self.transaction() as tx:
            self.fence = tx.session.fence + 1
            tx.set(owner_id=self.worker.worker_id, fence=self.fence)

    def release(self) -> None:
        with self.transaction() as tx:
            tx.set(owner_id=None)
        publish.status(self.session_id)

    def start_step(self) -> str:
        self.message = identity.new_message_id()
        self.append(events.StepStarted(message=self.message, agent="default", model="demo:scripted", step=1))
        return self.message

    def open_part(self, kind: str = "text") -> Part:
        part = Part(id=identity.new_part_id(), message=self.message, kind=kind)
        index = sum(1 for each in self.parts.values() if each.message == self.message)
        started = events.TextStarted if kind == "text" else events.ReasoningStarted
        self.parts[part.id] = part
        self.append(started(message=part.message, part=part.id, index=index))
        return part

    def say(self, part: Part, text: str) -> None:
        publish.delta(self.session_id, part.message, part.id, len(part.text), text)
        part.text += text

    def checkpoint(self) -> None:
        for part in self.parts.values():
            if not part.is_ended:
                PartCheckpoint.objects.update_or_create(
                    part_id=part.id, defaults={"fence": self.fence, "text": part.text}
                )

    def end_part(self, part: Part) -> None:
        if part.kind == "text":
            self.append(events.TextEnded(message=part.message, part=part.id, text=part.text))
        else:
            self.append(
                events.ReasoningEnded(message=part.message, part=part.id, text=part.text, complete=True)
            )
        part.is_ended = True

    def fail_step(self) -> None:
        error = StepError(reason="interrupted", message="Stopped.")
        self.append(events.StepFailed(message=self.message, outcome="interrupted", error=error))

    def head_seq(self) -> int:
        return Session.objects.get(pk=self.session_id).head_seq

    def stored_types(self) -> list[str]:
        return [event.type for event in log.events_after(self.session_id)]


class Picture:
    """A client as the contract describes it. It trusts nothing: every frame must fit what it has."""

    def __init__(self, *, after: int = 0) -> None:
        self.seq = after
        self.texts: dict[str, str] = {}
        self.ended: dict[str, str] = {}
        self.statuses: list[dict[str, Any]] = []
        self.ready: list[int] = []
        self.kinds: list[str] = []
        self.bytes = 0

    def take(self, text: str) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(text)
        self.bytes += len(text)
        self.kinds.append(frame["t"])
        getattr(self, f"_{frame['t']}")(frame)
        return frame

    def restart(self, *, after: int) -> None:
        self.seq = after

    def _event(self, frame: dict[str, Any]) -> None:
        event = frame["event"]
        assert event["seq"] == self.seq + 1, f"event {event['seq']} after {self.seq}"
        self.seq = event["seq"]
        data = event["data"]
        if event["type"] in ("text.started", "reasoning.started"):
            self.texts[data["part"]] = ""
        if event["type"] in ("text.ended", "reasoning.ended"):
            self.texts[data["part"]] = data["text"]
            self.ended[data["part"]] = data["text"]

    def _open(self, frame: dict[str, Any]) -> None:
        assert frame["part"] not in self.ended, "an ended part was opened again"
        self.texts[frame["part"]] = frame["text"]

    def _delta(self, frame: dict[str, Any]) -> None:
        assert frame["part"] not in self.ended, "an ended part grew"
        so_far = self.texts[frame["part"]]
        assert frame["offset"] == len(so_far), f"a fragment for {frame['offset']} at {len(so_far)}"
        assert frame["text"], "an empty fragment"
        self.texts[frame["part"]] = so_far + frame["text"]

    def _status(self, frame: dict[str, Any]) -> None:
        self.statuses.append(frame["status"])

    def _ready(self, frame: dict[str, Any]) -> None:
        self.ready.append(frame["head_seq"])

    def _ping(self, frame: dict[str, Any]) -> None:
        pass

    def _admitted(self, frame: dict[str, Any]) -> None:
        pass
