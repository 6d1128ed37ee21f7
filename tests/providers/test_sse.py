"""Events out of bytes, however the bytes were split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.providers import sse
from sessions_app.providers.sse import BadEventStream, Event


def read(*chunks: bytes, max_event_bytes: int = 10_000) -> list[Event]:
    reader = sse.EventReader(max_event_bytes=max_event_bytes)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    reader.close()
    return events


def outcome(*chunks: bytes) -> tuple[list[Event], str | None]:
    """The events, and what ended the reading if something did."""
    reader = sse.EventReader(max_event_bytes=60)
    events: list[Event] = []
    try:
        for chunk in chunks:
            events.extend(reader.feed(chunk))
            # An event that came with the fault is kept: extend takes one after the other.
        reader.close()
    except BadEventStream as fault:
        return events, str(fault)
    return events, None


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: hello\n\n", [Event("", "hello")], id="plain"),
        pytest.param(b"data:hello\n\n", [Event("", "hello")], id="no space after the colon"),
        pytest.param(b"data:  hello\n\n", [Event("", " hello")], id="only one space is taken off"),
        pytest.param(b"event: ping\ndata: {}\n\n", [Event("ping", "{}")], id="named"),
        pytest.param(b"data: a\n\ndata: b\n\n", [Event("", "a"), Event("", "b")], id="two"),
        pytest.param(b"data: a\ndata: b\n\n", [Event("", "a\nb")], id="two data lines are one event"),
        pytest.param(b"data: a\r\n\r\n", [Event("", "a")], id="CRLF"),
        pytest.param(b"data: a\r\r", [Event("", "a")], id="CR alone"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [Event("", "a")], id="byte order mark"),
        pytest.param(b": OPENROUTER PROCESSING\n\ndata: a\n\n", [Event("", "a")], id="comment"),
        pytest.param(b"data: : OPENROUTER PROCESSING\n\n", [], id="comment in a data field"),
        pytest.param(
            b"id: 7\n\n: ping\n\ndata: a\n\n", [Event("", "a")], id="id and comment dispatch nothing"
        ),
        pytest.param(b"data: \n\n", [], id="empty data"),
        pytest.param(b"data\n\n", [], id="field without colon"),
        pytest.param(b"retry: 5\nnonsense\ndata: a\n\n", [Event("", "a")], id="other fields"),
        pytest.param(b"event: a\n\ndata: x\n\n", [Event("", "x")], id="a name without data does not last"),
        pytest.param(b"data: a\n", [], id="without a blank line nothing happened"),
    ],
)
def test_a_stream_gives_its_events(stream: bytes, events: list[Event]) -> None:
    assert read(stream) == events


@pytest.mark.parametrize(
    "stream",
    [b"data: \xff\n\n", b"data: \xf0\x9f\n\n", b": \xc3\n", b"data: a\n\ndata: \xd1"],
    ids=["invalid", "cut inside a line", "in a comment", "cut at the end"],
)
def test_bytes_that_are_no_text_are_refused_and_never_replaced(stream: bytes) -> None:
    with pytest.raises(BadEventStream, match="UTF-8"):
        read(stream)


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * 100, b"data: " + b"x" * 100 + b"\n\n", b"data: 12345\n" * 20, b":" * 100],
    ids=["line without end", "line", "many lines of one event", "comment without end"],
)
def test_an_event_above_the_limit_is_refused(stream: bytes) -> None:
    with pytest.raises(BadEventStream, match="longer than 60 bytes"):
        read(stream, max_event_bytes=60)


def test_small_events_together_may_be_larger_than_the_limit() -> None:
    assert len(read(b"data: 1234567890\n\n" * 100, max_event_bytes=60)) == 100


PIECES = st.sampled_from(
    [
        b"data: a",
        b"data:",
        b": c",
        b"event: e",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b" ",
        b"x" * 30,
        "data: ь🌍".encode(),
        b"\xf0\x9f",
        b"\x8c\x8d",
        b"\xff",
    ]
)


@given(st.lists(PIECES, max_size=30).map(b"".join), st.data())
def test_any_split_of_any_bytes_gives_the_same(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert outcome(*parts) == outcome(stream)
    assert outcome(*(stream[i : i + 1] for i in range(len(stream)))) == outcome(stream)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise_anything_else(stream: bytes) -> None:
    outcome(stream)
