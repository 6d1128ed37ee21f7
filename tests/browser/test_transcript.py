"""The reader's state: every frame may come twice, late or not at all, and the text is right all the same."""

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import modules
from tests.support.requirements import requires

pytestmark = requires("chromium")

Frame = dict[str, Any]

ALPHABET: Final = ["a", "b ", "é", "🌊", "👩‍👩‍👧", "\n", "\r\n", "ß", "🜁", "<b>", "語"]

PLAY: Final = """
    const { seq = 0, frames } = input;
    const state = m.createState({ session: "ses_1", seq });
    const shown = [], kinds = [];
    for (const frame of frames) {
        const changes = m.apply(state, frame);
        kinds.push(changes.map((change) => change.kind));
        shown.push(Array.from(state.parts.values(), (part) => part.text).join("|"));
    }
    return {
        shown, kinds, seq: state.seq, gap: m.hasGap(state), title: state.title, model: state.model,
        messages: Array.from(state.messages.values()),
        lengths: Array.from(state.parts.values(), (part) => part.length),
        pending: Array.from(state.pending.values()), outgoing: Array.from(state.outgoing.values()),
    };
"""


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    with modules.opened(chromium) as opened:
        yield opened


def play(page: Page, frames: list[Frame], *, seq: int = 0) -> Any:
    return modules.run(page, "transcript.js", PLAY, {"frames": frames, "seq": seq})


def event(seq: int, kind: str, **data: Any) -> Frame:
    return {"t": "event", "event": {"seq": seq, "type": kind, "version": 1, "time": "", "data": data}}


def delta(offset: int, text: str, part: str = "p") -> Frame:
    return {"t": "delta", "message": "a", "part": part, "offset": offset, "text": text}


def opening(text: str, part: str = "p") -> Frame:
    return {"t": "open", "message": "a", "part": part, "text": text}


STARTED: Final = [
    event(1, "step.started", message="a", agent="default", model="demo:scripted", step=1),
    event(2, "text.started", message="a", part="p", index=0),
]


def test_deltas_grow_the_text_where_they_belong(page: Page) -> None:
    played = play(page, [*STARTED, delta(0, "Hello"), delta(5, " world")])

    assert played["shown"][-1] == "Hello world"
    assert played["kinds"][-2:] == [["append"], ["append"]]


def test_offsets_count_code_points_not_utf16_units(page: Page) -> None:
    played = play(page, [*STARTED, delta(0, "🌊🌊"), delta(2, "👩‍👩‍👧"), delta(7, "!")])

    assert played["shown"][-1] == "🌊🌊👩‍👩‍👧!"
    assert played["lengths"] == [8]


def test_a_repeated_delta_adds_nothing_and_an_overlapping_one_only_what_is_new(page: Page) -> None:
    played = play(
        page,
        [*STARTED, delta(0, "a🌊b"), delta(0, "a🌊b"), delta(1, "🌊bc"), delta(2, "b"), delta(0, "a🌊bcd🌊")],
    )

    assert played["shown"][-1] == "a🌊bcd🌊"


def test_a_gap_shows_nothing_out_of_place_and_asks_for_what_is_missing(page: Page) -> None:
    played = play(page, [*STARTED, delta(0, "one "), delta(8, "three"), delta(4, "two ")])

    assert played["shown"][-2:] == ["one ", "one two three"]
    assert played["kinds"][-2] == ["sync"]
    assert not played["gap"]


def test_open_replaces_what_differs_and_takes_nothing_back_that_is_further_along(page: Page) -> None:
    shorter = play(page, [*STARTED, delta(0, "one two"), opening("one")])
    longer = play(page, [*STARTED, delta(0, "one"), opening("one two")])
    other = play(page, [*STARTED, delta(0, "one"), opening("other text")])

    assert shorter["shown"][-1] == "one two"
    assert longer["shown"][-1] == "one two"
    assert other["shown"][-1] == "other text"


def test_open_fills_the_gap_in_front_of_what_was_kept(page: Page) -> None:
    played = play(page, [*STARTED, delta(6, "world"), opening("Hello ")])

    assert played["shown"][-1] == "Hello world"


def test_the_end_of_a_part_replaces_its_text_and_closes_it(page: Page) -> None:
    played = play(
        page,
        [
            *STARTED, delta(0, "draft"), delta(90, "far ahead"),
            event(3, "text.ended", message="a", part="p", text="final"), delta(5, " more"), opening("older"),
        ],
    )  # fmt: skip

    assert played["shown"][-3:] == ["final"] * 3
    assert not played["gap"]


def test_an_answer_that_is_told_anew_replaces_what_was_received_of_it(page: Page) -> None:
    error = {"error_class": "partial", "reason": "cut", "message": "Cut."}
    played = play(
        page,
        [
            *STARTED, delta(0, "Hel"),
            event(3, "text.ended", message="a", part="p", text="Hel"),
            event(4, "attempt.unknown", message="a", attempt="t", error=error),
            event(5, "step.failed", message="a", outcome="unknown", error=error, notice="Cut."),
            event(6, "attempt.resumed", message="a", attempt="t", keeps_parts=False),
            event(7, "text.started", message="a", part="q", index=0), delta(0, "Hello", "q"),
        ],
    )  # fmt: skip

    assert played["shown"][-4:] == ["Hel", "", "", "Hello"]
    (message,) = played["messages"]
    assert (message["state"], message["error"], message["parts"]) == ("running", None, ["q"])
    assert message["attempts"] == {}


def test_live_text_that_is_faster_than_its_event_is_kept_for_it(page: Page) -> None:
    played = play(page, [STARTED[0], delta(0, "early "), delta(6, "bird"), STARTED[1]])

    assert played["shown"] == ["", "", "", "early bird"]
    assert played["kinds"][1] == ["sync"]


def test_events_apply_once_each_in_order_whatever_order_they_come_in(page: Page) -> None:
    ended = event(3, "text.ended", message="a", part="p", text="all")
    closed = event(4, "step.ended", message="a", finish="stop")

    played = play(page, [closed, STARTED[1], ended, STARTED[0], STARTED[0], closed, ended])

    assert played["seq"] == 4
    assert [message["state"] for message in played["messages"]] == ["completed"]
    assert played["shown"][-1] == "all"
    assert played["kinds"][0] == ["sync"]
    assert played["kinds"][-3:] == [[], [], []]
    assert not played["gap"]


def test_a_part_of_a_message_that_the_page_does_not_show_changes_nothing(page: Page) -> None:
    played = play(
        page, [event(1, "text.started", message="older", part="p", index=0), opening("x"), delta(1, "y")]
    )

    assert (played["seq"], played["messages"], played["lengths"]) == (1, [], [])


def test_an_event_of_an_unknown_type_moves_the_reader_on(page: Page) -> None:
    played = play(page, [event(1, "something.new", whatever=1), event(2, "session.updated", title="T")])

    assert (played["seq"], played["title"]) == (2, "T")


def test_a_prompt_goes_from_pending_into_the_transcript_once(page: Page) -> None:
    admitted = event(
        1, "prompt.admitted", message="m", text="hi", delivery="steer", origin="user", wake=True, digest=""
    )
    promoted = event(2, "prompt.promoted", message="m")

    played = play(page, [admitted, admitted, promoted, promoted])

    assert played["pending"] == []
    assert [(each["id"], each["type"], each["text"]) for each in played["messages"]] == [("m", "user", "hi")]


def test_the_acknowledgement_and_the_event_may_come_in_either_order(page: Page) -> None:
    admitted = event(
        1, "prompt.admitted", message="m", text="hi", delivery="queue", origin="user", wake=True, digest=""
    )
    answer = {
        "t": "admitted",
        "prompt": {
            "id": "m",
            "text": "hi",
            "delivery": "queue",
            "state": "pending",
            "admitted_seq": 1,
            "origin": "user",
        },
    }
    promoted = event(2, "prompt.promoted", message="m")

    for frames in ([answer, admitted], [admitted, answer]):
        assert [each["id"] for each in play(page, frames)["pending"]] == ["m"]
        done = play(page, [*frames, promoted, answer])
        assert done["pending"] == []
        assert len(done["messages"]) == 1


def test_a_withdrawn_prompt_does_not_come_back_with_a_late_answer(page: Page) -> None:
    admitted = event(
        1, "prompt.admitted", message="m", text="hi", delivery="queue", origin="user", wake=True, digest=""
    )
    late = {
        "t": "admitted",
        "prompt": {"id": "m", "text": "hi", "delivery": "queue", "state": "pending", "admitted_seq": 1},
    }

    assert play(page, [admitted, event(2, "prompt.withdrawn", message="m"), late])["pending"] == []


def test_replaying_what_the_page_already_holds_changes_no_text(page: Page) -> None:
    """The page may hold more than the seq it names: events after it are then applied again."""
    body = """
        const state = m.createState({ session: "ses_1", seq: 0 });
        m.addMessage(state, { id: "u", seq: 2, type: "user", state: "completed" });
        m.addMessage(state, { id: "a", seq: 3, type: "assistant", state: "completed" });
        m.addPart(state, { id: "p", message: "a", index: 0, kind: "text", state: "completed", text: "done 🌊" });
        let pending = 0;
        for (const frame of input) {
            m.apply(state, frame);
            pending = Math.max(pending, state.pending.size);
        }
        return { text: state.parts.get("p").text, count: state.messages.size, pending,
                 parts: state.messages.get("a").parts };
    """
    frames = [
        event(
            1, "prompt.admitted", message="u", text="q", delivery="steer", origin="user", wake=True, digest=""
        ),
        event(2, "prompt.promoted", message="u"),
        event(3, "step.started", message="a", agent="d", model="m", step=1),
        event(4, "text.started", message="a", part="p", index=0),
        delta(0, "do"),
        opening("don"),
        event(5, "text.ended", message="a", part="p", text="done 🌊"),
    ]

    assert modules.run(page, "transcript.js", body, frames) == {
        "text": "done 🌊", "count": 2, "pending": 0, "parts": ["p"],
    }  # fmt: skip


CALLED: Final = [
    STARTED[0],
    event(
        2, "tool.input.started", message="a", part="t", index=0, call_id="c", name="send_mail", hosted=False
    ),
    event(3, "tool.input.ended", message="a", part="t", raw='{"to":"all"}'),
]


def _call(page: Page, frames: list[Frame]) -> Any:
    body = """
        const state = m.createState({ session: "ses_1" });
        for (const frame of input) m.apply(state, frame);
        return { ...state.parts.get("t"), attempts: Array.from(state.messages.get("a").attempts.values()),
                 retry: state.messages.get("a").retry };
    """
    return modules.run(page, "transcript.js", body, frames)


def test_a_call_goes_from_its_question_to_its_unknown_end_and_a_repeat_changes_nothing(page: Page) -> None:
    asked = event(
        4, "tool.approval_requested", message="a", part="t", input={"to": "all"}, input_digest="d",
        effect="side_effect", because="agent",
    )  # fmt: skip
    approved = event(5, "tool.approval_decided", message="a", part="t", action="approve", by="ann")
    entered = event(
        6, "tool.called", message="a", part="t", input={"to": "all"}, input_digest="d", effect="side_effect"
    )
    progress = event(7, "tool.progress", message="a", part="t", text="half")
    lost = event(8, "tool.failed", message="a", part="t", error="interrupted", unknown=True)
    marked = event(9, "tool.decided", message="a", part="t", action="mark_done", by="bob", policy=False)

    waiting = _call(page, [*CALLED, asked])
    running = _call(page, [*CALLED, asked, approved, entered, progress])
    unknown = _call(page, [*CALLED, asked, approved, entered, progress, lost])
    decided = _call(page, [*CALLED, asked, approved, entered, progress, lost, marked, lost, approved])

    assert (waiting["state"], waiting["approval"], waiting["input"]) == (
        "pending", "waiting", '{\n  "to": "all"\n}',
    )  # fmt: skip
    assert (running["state"], running["progress"], running["decision"]["by"]) == ("running", "half", "ann")
    assert (unknown["state"], unknown["unknown"], unknown["decision"]) == ("error", True, None)
    assert (decided["state"], decided["decision"]["by"]) == ("error", "bob")


def test_an_unknown_attempt_is_kept_with_how_far_it_came_and_its_decision(page: Page) -> None:
    frames = [
        STARTED[0],
        event(2, "attempt.prepared", message="a", attempt="att", purpose="step", ordinal=1),
        event(3, "attempt.response_started", message="a", attempt="att", status=200),
        event(
            4, "attempt.unknown", message="a", attempt="att",
            error={"error_class": "partial", "reason": "cut", "message": "lost"},
        ),
        event(5, "tool.input.started", message="a", part="t", index=0, call_id="c", name="x", hosted=False),
    ]  # fmt: skip
    decided = event(
        6, "attempt.decided", message="a", attempt="att", action="abandon", by="ann", policy=False
    )

    (unknown,) = _call(page, frames)["attempts"]
    (after,) = _call(page, [*frames, decided])["attempts"]

    assert unknown == {"id": "att", "reason": "cut", "answered": True, "decision": None}
    assert (after["decision"]["action"], after["decision"]["by"]) == ("abandon", "ann")


def test_a_retry_is_shown_until_its_attempt_begins(page: Page) -> None:
    scheduled = event(4, "retry.scheduled", message="a", attempt=2, at="2026-11-29T12:00:00Z", reason="wait")
    begun = event(5, "attempt.prepared", message="a", attempt="att", purpose="step", ordinal=2)

    assert _call(page, [*CALLED, scheduled])["retry"]["attempt"] == 2
    assert _call(page, [*CALLED, scheduled, begun])["retry"] is None


def test_what_a_revert_hides_is_gone_with_its_parts(page: Page) -> None:
    admitted = event(
        3, "prompt.admitted", message="m", text="hi", delivery="steer", origin="user", wake=True, digest=""
    )
    promoted = event(4, "prompt.promoted", message="m")
    answer = [
        event(5, "step.started", message="b", agent="default", model="demo:scripted", step=1),
        event(6, "text.started", message="b", part="q", index=0),
    ]
    hidden = event(7, "revert.committed", message="m")

    played = play(
        page, [*STARTED, delta(0, "kept"), admitted, promoted, *answer, delta(0, "gone", "q"), hidden]
    )

    assert [message["id"] for message in played["messages"]] == ["a"]
    assert played["shown"][-2:] == ["kept|gone", "kept"]


def test_ready_behind_the_head_asks_again(page: Page) -> None:
    played = play(
        page, [STARTED[0], {"t": "ready", "head_seq": 2}, STARTED[1], {"t": "ready", "head_seq": 2}]
    )

    assert played["kinds"][1] == ["ready", "sync"]
    assert played["kinds"][3] == ["ready"]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_channel_does_the_text_is_a_growing_prefix_and_heals_to_the_whole(
    page: Page, seed: int
) -> None:
    """Deltas are dropped, repeated, reordered and cut anew; "open" heals; the end has the stored text."""
    chance = random.Random(seed)
    text = "".join(chance.choice(ALPHABET) for _ in range(chance.randint(1, 120)))
    lossy = _disturbed(_cut(text, chance), chance)
    checkpoint = opening(text[: chance.randint(0, len(text))])
    lossy.insert(chance.randint(0, len(lossy)), checkpoint)

    played = play(page, [*STARTED, *lossy, opening(text), delta(0, text)])
    ended = play(page, [*STARTED, *lossy, event(3, "text.ended", message="a", part="p", text=text)])

    before = ""
    for shown in played["shown"]:
        assert text.startswith(shown)
        assert shown.startswith(before)
        before = shown
    assert played["shown"][-1] == ended["shown"][-1] == text
    assert played["lengths"] == ended["lengths"] == [len(text)]
    assert not played["gap"]


def _cut(text: str, chance: random.Random) -> list[Frame]:
    frames, at = [], 0
    while at < len(text):
        size = chance.randint(1, 9)
        frames.append(delta(at, text[at : at + size]))
        at += size
    return frames


def _disturbed(frames: list[Frame], chance: random.Random) -> list[Frame]:
    kept = [frame for frame in frames if chance.random() > 0.2]
    kept += [frame for frame in frames if chance.random() < 0.2]
    positions = {id(frame): index + chance.uniform(0, 4) for index, frame in enumerate(kept)}
    return sorted(kept, key=lambda frame: positions[id(frame)])


def test_a_long_answer_costs_time_linear_in_its_length(page: Page) -> None:
    """A quadratic cost would make ten times the length a hundred times slower."""
    body = """
        const seconds = (words) => {
            const state = m.createState({ session: "ses_1", seq: 0 });
            for (const frame of input) m.apply(state, frame);
            const started = performance.now();
            for (let word = 0; word < words; word += 1) {
                m.apply(state, { t: "delta", part: "p", message: "a", offset: word * 8, text: "word 🌊 x" });
            }
            return [performance.now() - started, state.parts.get("p").length];
        };
        seconds(1000);
        const best = (words) => Math.min(...Array.from({ length: 5 }, () => seconds(words)[0]));
        return { short: best(20000), long: best(200000), length: seconds(1000)[1] };
    """
    cost = modules.run(page, "transcript.js", body, STARTED)

    assert cost["length"] == 8000
    assert cost["long"] < 35 * cost["short"]
