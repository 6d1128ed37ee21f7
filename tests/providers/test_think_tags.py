"""Reasoning between tags: what is taken out of the text, and what stays."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.providers.think_tags import ThinkTags

PIECES = st.sampled_from(
    ["<think>", "</think>", "<thinking>", "</thinking>", "`", "```", "~~~", "\n", " ", "\t", "<", "th", "x"]
)


def pieces_of(*fragments: str) -> list[tuple[bool, str]]:
    tags = ThinkTags()
    return [piece for fragment in fragments for piece in tags.feed(fragment)] + list(tags.close())


def read(*fragments: str) -> list[tuple[bool, str]]:
    """The pieces, with neighbours of one kind joined: fragments cut them anywhere."""
    joined: list[tuple[bool, str]] = []
    for is_thought, words in pieces_of(*fragments):
        assert words
        if joined and joined[-1][0] == is_thought:
            words = joined.pop()[1] + words
        joined.append((is_thought, words))
    return joined


@given(st.lists(PIECES, max_size=25), st.data())
def test_any_split_gives_the_same_and_only_tags_are_taken_out(pieces: list[str], data: st.DataObject) -> None:
    whole = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert read(*parts) == read(*whole) == read(whole)
    tags = "(?:</?think(?:ing)?>)*"
    told = tags.join(re.escape(words) for _, words in pieces_of(whole))
    assert re.fullmatch(tags + told + tags, whole)


def test_text_is_passed_on_at_once_and_at_most_a_tag_is_held_back() -> None:
    tags = ThinkTags()

    assert list(tags.feed("a < b")) == [(False, "a < b")]
    assert list(tags.feed("\n<thin")) == [(False, "\n")]
    assert list(tags.feed("gs")) == [(False, "<things")]


def test_reading_takes_time_in_proportion() -> None:
    started = time.process_time()

    read("\n" * 100_000, " " * 100_000, "x\n" * 50_000, "<think>", "`</think" * 50_000)

    assert time.process_time() - started < 5
