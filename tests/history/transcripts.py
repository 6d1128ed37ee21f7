"""Any transcript that a session can come to hold, whatever was cut, lost or decided in it."""

from typing import Any

from hypothesis import strategies
from hypothesis.strategies import SearchStrategy

from schema.attempts import Decision
from sessions_app.history.entries import Entry, PartEntry
from sessions_app.tools.port import INTERRUPTED

MODELS = ("demo:scripted", "anthropic:claude", "anthropic:other")

words = strategies.sampled_from(["", " ", "\n", "Hello", "So it is.", "1 2 3"])
replays = strategies.sampled_from(
    [None, {}, {"signature": "abc"}, {"call": {"id": 1}, "result": {"data": [None]}}]
)
call_ids = strategies.sampled_from(["", "call_1", "call_1", "call_2", "call", "call_1_2"])

decisions = strategies.none() | strategies.builds(
    Decision,
    action=strategies.sampled_from(["abandon", "retry", "mark_done", "mark_not_done", "approve", "deny"]),
    by=strategies.just("ann"),
    policy=strategies.booleans(),
    at=strategies.just("2031-05-04T12:00:00Z"),
    reason=strategies.sampled_from([None, "", "I looked."]),
    result=strategies.sampled_from([None, "", "42", {"sent": True}]),
)

spoken = strategies.builds(
    PartEntry,
    kind=strategies.sampled_from(["text", "reasoning"]),
    text=words,
    complete=strategies.booleans(),
    replay=replays,
)

tools = strategies.builds(
    PartEntry,
    kind=strategies.just("tool"),
    replay=replays,
    call_id=call_ids,
    name=strategies.sampled_from(["", "send_mail", "read_file"]),
    raw_input=strategies.sampled_from(["", "{}", '{"a": 1}', '{"a": ', "[1]", "NaN"]),
    input=strategies.sampled_from([None, {}, {"a": 1}]),
    state=strategies.sampled_from(["pending", "running", "completed", "error"]),
    hosted=strategies.booleans(),
    effect=strategies.sampled_from(["", "read", "idempotent", "side_effect"]),
    approval=strategies.sampled_from(["", "waiting", "approved", "denied"]),
    entered=strategies.booleans(),
    unknown=strategies.booleans(),
    output=words,
    error=strategies.sampled_from(["", INTERRUPTED, "It broke", "Timed out."]),
    decision=decisions,
)

answers = strategies.builds(
    Entry,
    type=strategies.just("assistant"),
    state=strategies.sampled_from(["running", "waiting", "completed", "failed", "interrupted", "unknown"]),
    model=strategies.sampled_from(MODELS),
    notice=strategies.sampled_from(["", " ", "[Notice] It was cut."]),
    parts=strategies.lists(spoken | tools, max_size=5).map(tuple),
)

said = strategies.builds(
    Entry,
    type=strategies.sampled_from(["user", "synthetic", "system"]),
    state=strategies.just("completed"),
    origin=strategies.sampled_from(["user", "recovery", "retry", "system"]),
    text=words,
)

transcripts: SearchStrategy[Any] = strategies.lists(said | answers, max_size=8).map(tuple)
