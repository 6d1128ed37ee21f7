"""The scripts' small pure parts, and their agreement with what the server says in words."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from sessions_app.web import calls, cards, words
from tests.browser import modules
from tests.support.requirements import requires

pytestmark = requires("chromium")


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    with modules.opened(chromium) as opened:
        yield opened


@pytest.mark.parametrize("text", ["", "abc", "🌊", "a🌊b👩‍👩‍👧c", "é\r\n🜁"])
def test_counting_and_dropping_code_points_agree_with_the_server(page: Page, text: str) -> None:
    body = """return { count: m.countCodePoints(input.text), tails: input.cuts.map((n) => m.dropCodePoints(input.text, n)) };"""
    cuts = list(range(len(text) + 3))

    answer = modules.run(page, "codepoints.js", body, {"text": text, "cuts": cuts})

    assert answer == {"count": len(text), "tails": [text[cut:] for cut in cuts]}


def test_new_ids_match_the_contract_and_differ(page: Page) -> None:
    ids = modules.run(page, "identity.js", "return Array.from({length: 50}, () => m.newId('msg'));")

    from schema.ids import is_client_message_id

    assert all(map(is_client_message_id, ids))
    assert len(set(ids)) == 50


def test_the_wait_between_tries_doubles_up_to_eight_seconds_with_jitter(page: Page) -> None:
    body = "return [0, 1, 2, 3, 4, 5, 40].map((n) => [m.backoff(n, 0, input), m.backoff(n, 1, input)]);"

    waits = modules.run(page, "connection.js", body, False)
    of_an_overloaded_server = modules.run(page, "connection.js", body, True)

    assert waits == [[w / 2, w] for w in (500, 1000, 2000, 4000, 8000, 8000, 8000)]
    assert of_an_overloaded_server == [[w / 2, w] for w in (1000, 2000, 4000, 8000, 16000, 30000, 30000)]


def _message(
    state: str,
    *,
    error: dict[str, Any] | None = None,
    finish: str | None = None,
    parts: Sequence[Any] = (),
    unknown: Sequence[Any] = (),
) -> dict[str, Any]:
    return {
        "type": "assistant",
        "state": state,
        "error": error,
        "finish": finish,
        "parts": list(parts),
        "unknown": list(unknown),
    }


def _part(kind: str, state: str, text: str = "x") -> dict[str, Any]:
    return {"kind": kind, "state": state, "text": text}


MESSAGES: list[dict[str, Any] | None] = [
    None,
    {"type": "user", "state": "completed", "error": None, "finish": None, "parts": []},
    _message("running"),
    _message("running", parts=[_part("reasoning", "open")]),
    _message("running", parts=[_part("reasoning", "completed"), _part("text", "open")]),
    _message("completed", finish="stop", parts=[_part("text", "completed")]),
    _message("completed", finish="stop", parts=[_part("text", "completed", " \n")]),
    _message("completed", finish="length", parts=[_part("text", "completed")]),
    _message("completed", finish="content_filter"),
    _message("unknown", error={"reason": "cut", "message": ""}, unknown=[{"id": "att_1"}]),
    *(
        _message(state, error={"reason": reason, "message": detail, "error_class": error_class})
        for state, reason, detail, error_class in [
            ("failed", "auth", "No key.", "rejected"),
            ("failed", "provider_error", "Boom", "failed"),
            ("failed", "configuration", "", None),
            ("interrupted", "interrupted", "stop", None),
            ("interrupted", "shutdown", "stop", None),
            ("interrupted", "crash", "why", None),
            ("unknown", "cut", "", "partial"),
            ("unknown", "crash", "x", "ambiguous"),
        ]
    ),
]
STATUSES: list[dict[str, Any]] = [
    {"state": state, "paused": paused, "parked": parked, "pending": {"steer": steer, "queue": 0}}
    for state in ("idle", "queued", "busy", "retrying", "waiting", "needs_decision", "orphaned")
    for paused, parked, steer in ((False, False, 0), (True, False, 1), (True, False, 0), (False, True, 0))
]


def test_page_and_scripts_choose_the_same_words_for_the_same_facts(page: Page) -> None:
    body = """
        return input.cases.map(({ status, message }) => {
            const state = { status, parts: new Map(), pending: new Map() };
            if (status.pending.steer) state.pending.set("m", {});
            const attempts = new Map((message?.unknown ?? []).map((attempt) => [attempt.id, attempt]));
            const known = message && { ...message, attempts, parts: message.parts.map((part, id) => (state.parts.set(id, part), id)) };
            return [
                m.pill(state, known), known ? m.note(state, known, input.words) : "", m.sessionNote(status, input.words),
                m.again(known, input.words),
            ];
        });
    """
    pairs = list(product(STATUSES, MESSAGES))
    cases = [{"status": status, "message": message} for status, message in pairs]

    answers = modules.run(page, "words.js", body, {"cases": cases, "words": words.tables()})

    for answer, (status, message) in zip(answers, pairs, strict=True):
        note = words.note(message) if message else ""
        expected = [words.pill(status, message), note, words.session_note(status), words.again(message)]
        assert answer == expected, (status, message)


@pytest.mark.parametrize("seconds", [None, 0, 0.999, 1, 59.9, 600])
def test_page_and_scripts_say_alike_how_long_the_model_thought(page: Page, seconds: float | None) -> None:
    given = {"seconds": seconds, "words": words.tables()}

    said = modules.run(page, "words.js", "return m.thoughts(input.seconds, input.words);", given)

    assert said == words.thoughts(seconds)


DECISIONS: list[dict[str, Any] | None] = [
    None,
    {"action": "deny", "by": "ann", "policy": False, "reason": "no", "at": "2026-11-29T12:00:00Z"},
    {"action": "mark_done", "by": "ann", "policy": False, "reason": None, "at": "2026-11-29T12:00:00Z"},
    {"action": "abandon", "by": "policy", "policy": True, "reason": "continue", "at": "2026-11-29T12:00:00Z"},
]


def test_page_and_scripts_make_the_same_cards(page: Page) -> None:
    parts = [
        {
            "id": "prt_1", "kind": "tool", "name": name, "state": state, "approval": approval, "unknown": unknown,
            "approval_reason": because, "earlier": earlier, "decision": decision, "can_be_asked": can_be_asked,
        }
        for name in ("send_mail", "", "a {} b $& c")
        for state, unknown in (("pending", False), ("running", False), ("completed", False), ("error", False), ("error", True))
        for approval in (None, "waiting", "approved", "denied")
        for because, earlier in (("agent", None), ("duplicate", "prt_0"))
        for can_be_asked in (False, True)
        for decision in DECISIONS
    ]  # fmt: skip
    body = "return input.parts.map((part) => m.callCard(part, input.words));"

    made = modules.run(page, "cards.js", body, {"parts": parts, "words": words.tables()})

    for answer, part in zip(made, parts, strict=True):
        card = cards.of_call(part, is_newest=True)
        if card is not None:
            card["earlier"] = card["earlier"] or None
        assert answer == card
    looks = modules.run(page, "calls.js", "return input.map(m.look);", parts)
    assert looks == [calls.look(part) for part in parts]


@pytest.mark.parametrize(
    "text", ["", "short", "  two \n lines ", "word " * 30, "x" * 90, "🌊 " * 50, "ends, exactly here: " * 5]
)
def test_page_and_scripts_name_a_chat_alike(page: Page, text: str) -> None:
    assert modules.run(page, "words.js", "return m.titleOf(input);", text) == words.title_of(text)


def test_each_prompt_is_kept_by_itself_and_leaves_with_its_user(page: Page) -> None:
    body = """
        const box = (user) => new m.Outbox({ storage: localStorage, user });
        const ann = box("1"), bob = box("2");
        ann.keep("ses_1", { id: "b", text: "two", delivery: "steer", at: 2 });
        box("1").keep("ses_1", { id: "a", text: "one", delivery: "queue", at: 1 });
        ann.keepDraft("ses_1", "half a tho");
        bob.keep("ses_1", { id: "c", text: "other", delivery: "steer", at: 0 });
        localStorage.setItem("holdfast:1:prompt:ses_1:broken", "{");
        const before = ann.prompts("ses_1").map(({ id }) => id);
        ann.forget("ses_1", "a");
        const after = ann.prompts("ses_1").map(({ id }) => id);
        const draft = ann.draft("ses_1");
        ann.clear();
        return { before, after, draft, left: ann.prompts("ses_1").length, bob: bob.prompts("ses_1").length };
    """

    assert modules.run(page, "outbox.js", body) == {
        "before": ["a", "b"], "after": ["b"], "draft": "half a tho", "left": 0, "bob": 1,
    }  # fmt: skip
