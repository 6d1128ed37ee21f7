"""What text may enter: nothing that a database or UTF-8 cannot hold, and nothing else is lost."""

from hypothesis import example, given, strategies

from schema.text import Cleaner, clean

HIGH, LOW = "\ud83d", "\ude00"
SMILE = "\U0001f600"

any_text = strategies.text(
    strategies.sampled_from(["a", "é", "\0", HIGH, LOW, "\udbff", "\udc00", SMILE, "\n", "\x1b"]), max_size=12
)


def test_nul_and_halves_without_a_partner_go_and_everything_else_stays() -> None:
    assert clean("a\0b") == "ab"
    assert clean(f"a{HIGH}b{LOW}c") == "abc"
    assert clean(f"{LOW}{HIGH}") == ""
    assert clean("tab\t, line\n, bell\x07, é, 中, 👩‍👩‍👧") == "tab\t, line\n, bell\x07, é, 中, 👩‍👩‍👧"


def test_two_halves_of_one_character_are_joined() -> None:
    assert clean(f"a{HIGH}{LOW}b") == f"a{SMILE}b"
    assert clean("\udbff\udfff") == "\U0010ffff"
    assert clean("\ud800\udc00") == "\U00010000"


def test_halves_that_something_stands_between_are_not_joined() -> None:
    assert clean(f"{HIGH}\0{LOW}") == ""
    assert clean(f"{HIGH}{HIGH}{LOW}") == SMILE


@given(any_text)
@example(f"{HIGH}\0{LOW}")
def test_clean_text_can_be_stored_anywhere_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)

    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned
    assert clean(cleaned) == cleaned


@given(any_text, strategies.data())
@example(f"{HIGH}{LOW}", None)
def test_fragments_however_cut_give_the_same_as_the_whole(
    text: str, data: strategies.DataObject | None
) -> None:
    cuts = (
        [1]
        if data is None
        else sorted(data.draw(strategies.lists(strategies.integers(0, len(text)), max_size=5)))
    )
    cleaner = Cleaner()

    fed = [cleaner.feed(text[start:end]) for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert "".join(fed) == clean(text)


def test_a_high_half_at_the_end_waits_and_what_comes_next_decides() -> None:
    cleaner = Cleaner()

    assert [cleaner.feed(fragment) for fragment in (f"a{HIGH}", "", f"{LOW}b", HIGH, "c")] == [
        "a", "", f"{SMILE}b", "", "c",
    ]  # fmt: skip
