"""What a reader is sent (contract section 4), encoded once."""

from dataclasses import dataclass
from typing import Literal

from schema.status import Status
from sessions_app.live.packets import to_json

Kind = Literal["event", "open", "delta", "status", "ready", "ping"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One server frame. ``json`` is the Event of an event frame, and the whole frame of any other."""

    kind: Kind
    json: str
    seq: int = 0

    def text(self) -> str:
        """The frame as a WebSocket sends it."""
        return f'{{"t":"event","event":{self.json}}}' if self.kind == "event" else self.json


PING = Frame("ping", '{"t":"ping"}')


def event(*, seq: int, json: str) -> Frame:
    return Frame("event", json, seq)


def opened(*, message: str, part: str, text: str) -> Frame:
    """The text so far of an open part; replaces what the reader has."""
    return Frame("open", to_json({"t": "open", "message": message, "part": part, "text": text}))


def delta(*, message: str, part: str, offset: int, text: str) -> Frame:
    return Frame(
        "delta", to_json({"t": "delta", "message": message, "part": part, "offset": offset, "text": text})
    )


def status(status: Status) -> Frame:
    return Frame("status", to_json({"t": "status", "status": status.model_dump(mode="json")}))


def ready(*, head_seq: int) -> Frame:
    return Frame("ready", to_json({"t": "ready", "head_seq": head_seq}))
