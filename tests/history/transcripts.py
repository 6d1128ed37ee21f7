"""Transcripts as they come out of crashes: made by hand, and any that a session can come to hold."""

from typing import Any

from hypothesis import strategies
from hypothesis.strategies import SearchStrategy

from schema.attempts import Decision
from sessions_app.history.entries import Entry, PartEntry
from sessions_app.tools.port import INTERRUPTED

MODEL = "anthropic:claude"
MODELS = ("demo:scripted", MODEL, "anthropic:other", "openai:gpt", "openai-responses:gpt")


def user(text: str = "Hello") -> Entry:
    return Entry(type="user", state="completed", origin="user", text=text)


def answer(*parts: PartEntry, state: str = "completed", model: str = MODEL, notice: str = "") -> Entry:
    return Entry(type="assistant", state=state, model=model, notice=notice, parts=parts)


def text(words: str) -> PartEntry:
    return PartEntry(kind="text", text=words, complete=True)


def reasoning(words: str = "Because", *, complete: bool = True, replay: Any = None) -> PartEntry:
    signed = {"signature": "abc"} if replay is None else replay
    return PartEntry(kind="reasoning", text=words, complete=complete, replay=signed)


def call(call_id: str = "call_1", **changed: Any) -> PartEntry:
    """A local call that returned, unless it is changed."""
    described: dict[str, Any] = {
        "kind": "tool", "call_id": call_id, "name": "send_mail", "raw_input": "{}", "input": {},
        "state": "completed", "entered": True, "output": "sent",
    }  # fmt: skip
    return PartEntry(**(described | changed))


def decision(action: Any, **changed: Any) -> Decision:
    return Decision(action=action, by="ann", policy=False, at="2031-05-04T12:00:00Z", **changed)


CUT: dict[str, Any] = {"state": "error", "error": INTERRUPTED, "output": "", "entered": False}
UNKNOWN: dict[str, Any] = CUT | {"entered": True, "unknown": True}
ONLY_BEGUN: dict[str, Any] = CUT | {"input": None}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "content": []}
HOSTED: dict[str, Any] = {"name": "web_search", "hosted": True, "replay": {"call": {}, "result": FOUND}}


words = strategies.sampled_from(["", " ", "\n", "Hello", "Grüße 🌍 \n", "1 2 3"])
replays = strategies.sampled_from(
    [
        None,
        {},
        {"signature": "abc"},
        {"redacted": "abc"},
        {"field": "reasoning_content"},
        {"call": {}, "result": FOUND},
        {
            "call": {"type": "mcp_tool_use", "server_name": "n"},
            "result": {**FOUND, "type": "mcp_tool_result"},
        },
        {"call": {"id": 1}, "result": {"data": [None]}},
        {"call": 1, "result": None},
        {"item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}},
        {"id": "it_1", "after": "rs_1"},
        {
            "call": {},
            "result": {
                "item": {"type": "web_search_call", "id": "ws_1", "status": "completed"},
                "after": "rs_1",
            },
        },
    ]
)
call_ids = strategies.sampled_from(
    ["", " ", "call_1", "call_1", "call_2", "call", "call_1_2", "c" * 70, "ü:1", "srvtoolu_1", "abcdefgh9"]
)
names = strategies.sampled_from(["", "send_mail", "read_file", "read file", "n" * 100])
raw_inputs = strategies.sampled_from(
    [
        "", " ", "{}", '{"a": 1}', '{"a": ', '{"a": "x', "[1]", "null", "{}{}", "NaN", '{"a": 1e999}',
        '{"a": "\\ud800\\u0000"}', '{"a": ' + "[" * 500 + "]" * 500 + "}", '{"a": ' + "[" * 5000,
    ]
)  # fmt: skip

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
    name=names,
    raw_input=raw_inputs,
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
