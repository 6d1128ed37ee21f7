"""What a provider says is storable once it passed the edge, and its signature void if it changed."""

from hypothesis import given
from hypothesis import strategies as st

from schema import text
from sessions_app.providers.scrub import Scrubber

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


def scrub(*fragments: str) -> tuple[str, bool]:
    scrubber = Scrubber()
    clean = "".join(scrubber.feed(fragment) for fragment in fragments)
    return clean, scrubber.has_altered


def test_a_pair_that_was_cut_between_fragments_is_one_character() -> None:
    assert scrub("a\ud83c", "\udf0db") == ("a\U0001f30db", False)


def test_a_nul_and_a_half_without_a_partner_are_dropped_and_told() -> None:
    assert scrub("a\x00b") == ("ab", True)
    assert scrub("a\udf0db") == ("ab", True)
    assert scrub("a\ud83c") == ("a", True)


@given(st.lists(ANY_TEXT, max_size=6))
def test_any_fragments_give_what_the_whole_gives(fragments: list[str]) -> None:
    assert scrub(*fragments)[0] == text.clean("".join(fragments))
