"""Checks the promises of the design from outside: what the API tells, what the provider saw, what tools did."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.crash.driver import Acknowledged
from tests.crash.provider import Asked

Json = dict[str, Any]

BUDGET: Final = 3
_MOST_ATTEMPTS: Final = 5
_CLOSING: Final = frozenset(
    {
        "text.ended", "reasoning.ended", "tool.input.ended", "tool.failed", "tool.succeeded", "step.failed",
        "step.ended", "attempt.settled", "attempt.unknown", "attempt.decided", "tool.decided",
    }
)  # fmt: skip
_FACTS: Final = ("prepared", "dispatched", "response_started", "first_output", "settled", "decided")
_INQUIRIES: Final = ("attempt.identified", "attempt.asked")
_SAID_LATER: Final = frozenset(
    {"attempt.decided", "tool.decided", "attempt.asked", "attempt.resumed", "execution.interrupted"}
)


@dataclass(kw_only=True)
class Seen:
    """One session as the API tells it."""

    id: str
    status: Json
    events: list[Json]
    messages: list[Json]
    prompts: list[Json]
    attempts: list[Json]


@dataclass(kw_only=True)
class Evidence:
    """All that is known of a run when everything is at rest."""

    sessions: list[Seen]
    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    reverted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    journal: list[Asked] = field(default_factory=list)
    ledger: list[Json] = field(default_factory=list)
    looked: Json = field(default_factory=dict)
    """What tests.crash.look told."""
    budget: int = BUDGET


def broken(evidence: Evidence) -> list[str]:
    """Every broken promise, in words; none when all hold."""
    found = [*_prompts(evidence), *_requests(evidence), *_entries(evidence), *_claims(evidence)]
    found += [f"log: {difference}" for difference in evidence.looked["differences"]]
    for seen in evidence.sessions:
        for check in (_log, _rest, _asked_for, _turns, _parts, _budgets):
            found += check(seen, evidence)
    return found


# P1, P2


def _prompts(evidence: Evidence) -> Iterator[str]:
    by_id = {seen.id: seen for seen in evidence.sessions}
    for message, known in evidence.acknowledged.items():
        if known.session in evidence.deleted:
            continue
        seen = by_id[known.session]
        if len(known.admitted) != 1:
            yield f"P2: {message} was acknowledged as {sorted(known.admitted)}"
        if message not in evidence.reverted:
            yield from _places(message, seen, may_be_withdrawn=message in evidence.withdrawn)


def _places(message: str, seen: Seen, *, may_be_withdrawn: bool) -> Iterator[str]:
    records = [prompt for prompt in seen.prompts if prompt["id"] == message]
    if len(records) != 1:
        yield f"P1: {message} is {len(records)} times in the inbox of {seen.id}"
        return
    in_transcript = sum(each["id"] == message for each in seen.messages)
    state = records[0]["state"]
    if in_transcript != (state == "promoted"):
        yield f"P1: {message} is {state} and {in_transcript} times in the transcript"
    if state == "withdrawn" and not may_be_withdrawn:
        yield f"P1: {message} was withdrawn, and nobody asked for it"


# P4, P5, P11


def _requests(evidence: Evidence) -> Iterator[str]:
    attempts = {each["client_request_id"]: each for seen in evidence.sessions for each in seen.attempts}
    for client_id, times in Counter(asked.client_id for asked in evidence.journal).items():
        if times > 1:
            yield f"P4: {times} requests of attempt {client_id}"
    for asked in evidence.journal:
        if asked.refused:
            yield f"P11: {asked.client_id}: {asked.refused}"
        attempt = attempts.get(asked.client_id)
        if attempt is None:
            if not evidence.deleted:
                yield f"P4: a request of {asked.client_id}, which is no attempt"
        elif attempt["dispatched_at"] is None or attempt["outcome"] == "not_sent":
            yield f"P4: a request of {asked.client_id}, which was not sent as its record says"
    yield from _repeated(evidence, attempts)
    yield from _kept(evidence, attempts)


def _repeated(evidence: Evidence, attempts: dict[str, Json]) -> Iterator[str]:
    """The same body again is only for a request that the provider refused before inference."""
    last: dict[str, Asked] = {}
    for asked in evidence.journal:
        earlier = last.get(asked.said)
        if earlier is not None:
            attempt = attempts.get(earlier.client_id, {})
            if attempt.get("error_class") not in ("rejected", "not_sent"):
                yield f"P5: {asked.client_id} repeats {earlier.client_id} ({attempt.get('state')})"
        last[asked.said] = asked


def _kept(evidence: Evidence, attempts: dict[str, Json]) -> Iterator[str]:
    """A response that its provider keeps is asked for by its name; it is not asked for anew."""
    texts = {message["id"]: _text(message) for seen in evidence.sessions for message in seen.messages}
    for number, asked in enumerate(evidence.journal):
        attempt = attempts.get(asked.client_id)
        if asked.kept is None or attempt is None:
            continue
        is_repeated = any(later.tag == asked.tag for later in evidence.journal[number + 1 :])
        if is_repeated and _could_be_asked(attempt, asked):
            yield f"P5: {asked.tag} was sent again although {asked.client_id} could be asked about"
        if attempt["outcome"] == "completed" and texts.get(attempt["message"]) != asked.kept.text:
            yield f"P12: {attempt['message']} says {texts.get(attempt['message'])!r}, not {asked.kept.text!r}"


def _could_be_asked(attempt: Json, asked: Asked) -> bool:
    """Its name was durable, its provider knows it, and nobody chose to try again."""
    is_retried = (attempt["decision"] or {}).get("action") == "retry"
    return bool(attempt["provider_response_id"]) and "#forgotten-" not in asked.tag and not is_retried


def _text(message: Json) -> str:
    return "".join(part["text"] for part in message["parts"] if part["kind"] == "text")


# P5, P6


def _entries(evidence: Evidence) -> Iterator[str]:
    calls = {
        part["id"]: part
        for seen in evidence.sessions
        for message in seen.messages
        for part in message["parts"]
        if part["kind"] == "tool"
    }
    called = {
        event["data"]["part"]: event["time"]
        for seen in evidence.sessions
        for event in seen.events
        if event["type"] == "tool.called"
    }
    settled = {
        event["data"]["part"]: event["time"]
        for seen in evidence.sessions
        for event in seen.events
        if event["type"] in ("tool.failed", "tool.succeeded")
    }
    for line in evidence.ledger:
        if line["call"] in settled and _seconds(settled[line["call"]]) < line["at"]:
            yield f"P3: {line['call']} ({line['tool']}) was entered after its end was told"
    for call, times in Counter(line["call"] for line in evidence.ledger).items():
        if times > 1:
            yield f"P5: call {call} was entered {times} times"
    before: dict[str, Json] = {}
    for line in evidence.ledger:
        if line["session"] in evidence.deleted:
            continue
        yield from _entry(line, calls, called, before)


def _entry(
    line: Json, calls: dict[str, Json], called: dict[str, str], before: dict[str, Json]
) -> Iterator[str]:
    call = line["call"]
    if call not in called:
        yield f"P6: {call} ({line['tool']}) was entered without tool.called"
    elif _seconds(called[call]) > line["at"]:
        yield f"P6: {call} ({line['tool']}) was entered before tool.called"
    if line["tool"] == "look":
        return
    same = json.dumps([line["session"], line["tool"], line["input"]], sort_keys=True)
    earlier = before.get(same)
    if earlier is not None and earlier["unknown"] and calls.get(call, {}).get("approval") != "approved":
        decision = earlier["decision"] or {}
        if decision.get("action") != "mark_not_done":
            yield f"P5: {line['tool']} was entered again as {call} although {earlier['id']} is unknown"
    before[same] = calls.get(call, {"unknown": False})


def _seconds(time: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(time).timestamp()


# P7


def _claims(evidence: Evidence) -> Iterator[str]:
    claims = evidence.looked["claims"]
    for what in ("boundary_seq", "lost_fence"):
        for (session, value), times in Counter((each["session_id"], each[what]) for each in claims).items():
            if times > 1:
                yield f"P7: {times} claims of {session} at {what} {value}"
    by_id = {each["id"]: each for each in claims}
    for seen in evidence.sessions:
        told = [event["data"] for event in seen.events if event["type"] == "recovery.claimed"]
        if sorted(each["claim"] for each in told) != sorted(
            c for c in by_id if by_id[c]["session_id"] == seen.id
        ):
            yield f"P7: {seen.id} tells of {len(told)} claims and has others"
        yield from _continuations(seen, told)


def _continuations(seen: Seen, told: list[Json]) -> Iterator[str]:
    promised = {each["continuation"] for each in told if each.get("continuation")}
    unknown = {f"msg_rec-{each['id'].partition('_')[2]}" for each in seen.attempts if each["unknown_at"]}
    steps = {f"msg_rec-{each['id'].partition('_')[2]}" for each in seen.messages}
    for prompt in seen.prompts:
        if prompt["origin"] == "recovery" and prompt["id"] not in promised | unknown | steps:
            yield f"P7: continuation {prompt['id']} belongs to no claim"
    for continuation in promised:
        if all(prompt["id"] != continuation for prompt in seen.prompts):
            yield f"P7: continuation {continuation} was promised and is not there"


# The log, P8


def _log(seen: Seen, evidence: Evidence) -> Iterator[str]:
    seqs = [event["seq"] for event in seen.events]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"log: {seen.id} has gaps: {seqs}"
    if seen.status["head_seq"] != len(seqs):
        yield f"log: {seen.id} has head_seq {seen.status['head_seq']} and {len(seqs)} events"


def _rest(seen: Seen, evidence: Evidence) -> Iterator[str]:
    if seen.status["state"] != "idle" or seen.status["owner_alive"] or seen.id in evidence.looked["owned"]:
        yield f"P8: {seen.id} is at rest and {seen.status}"
    for message in seen.messages:
        if message["state"] == "running":
            yield f"P8: {message['id']} is running and nobody runs it"
        for part in message["parts"]:
            if part["state"] in ("open", "running", "pending"):
                yield f"P8: part {part['id']} of {message['id']} is {part['state']}"
    for attempt in seen.attempts:
        if attempt["state"] in ("prepared", "dispatched", "streaming"):
            yield f"P8: {attempt['id']} is {attempt['state']}"


# P3, P9


def _asked_for(seen: Seen, evidence: Evidence) -> Iterator[str]:
    """A whole answer without calls is the end, until somebody says something."""
    is_answered = has_calls = False
    for event in seen.events:
        match event["type"]:
            case "step.started":
                if is_answered:
                    yield f"P3: {event['data']['message']} was begun although nothing was owed"
                has_calls = False
            case "tool.input.started":
                has_calls = True
            case "step.ended":
                is_answered = not has_calls
            case "prompt.promoted":
                is_answered = False


def _turns(seen: Seen, evidence: Evidence) -> Iterator[str]:
    """One step at a time, one step after the other, and an ended one stays as it ended."""
    newest = ""
    ended: set[str] = set()
    started: set[str] = set()
    for event in seen.events:
        kind, message = event["type"], event["data"].get("message")
        if kind == "step.started":
            if newest and newest not in ended:
                yield f"P9: {message} was started while {newest} was open"
            newest = message
            started.add(message)
        elif kind == "attempt.resumed" and message == newest:
            ended.discard(message)
        elif message in ended and kind not in _SAID_LATER:
            yield f"P3: {kind} at {event['seq']} was written to {message}, which had ended"
        elif message in started - {newest} and kind not in _CLOSING:
            yield f"P9: {kind} at {event['seq']} was written to {message}, behind {newest}"
        if kind in ("step.ended", "step.failed"):
            ended.add(message)


def _parts(seen: Seen, evidence: Evidence) -> Iterator[str]:
    """A part ends once, an attempt goes forward only."""
    ended: set[str] = set()
    reached: dict[str, int] = {}
    for event in seen.events:
        kind, data = event["type"], event["data"]
        if kind in ("text.ended", "reasoning.ended", "tool.succeeded", "tool.failed"):
            if data["part"] in ended:
                yield f"P3: {kind} at {event['seq']} ended part {data['part']} again"
            ended.add(data["part"])
        elif kind == "attempt.resumed":
            reached.pop(data["attempt"], None)
        elif kind.startswith("attempt.") and kind not in _INQUIRIES:
            fact = _FACTS.index(kind.partition(".")[2].replace("unknown", "settled"))
            if fact <= reached.get(data["attempt"], -1):
                yield f"P3: {kind} at {event['seq']} came after a later fact of {data['attempt']}"
            reached[data["attempt"]] = fact


# P10


def _budgets(seen: Seen, evidence: Evidence) -> Iterator[str]:
    in_a_row = 0
    for message in seen.messages:
        if len(message["attempts"]) > _MOST_ATTEMPTS:
            yield f"P10: {message['id']} has {len(message['attempts'])} attempts"
        if message["type"] == "user":
            in_a_row = 0
        elif message["type"] == "synthetic":
            in_a_row += message["id"].startswith("msg_rec-clm")
            if in_a_row > max(evidence.budget, 1):
                yield f"P10: {in_a_row} continuations in a row in {seen.id}"
