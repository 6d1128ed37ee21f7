import time
import tracemalloc
from typing import Final

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import sessions
from sessions_app.log import session_transaction
from sessions_app.models import ToolOverflow
from sessions_app.tools import overflow
from sessions_app.tools.overflow import INLINE_BYTES, STORED_BYTES, Overflow, bound
from sessions_app.tools.port import Output
from tests.support import world

SECONDS: Final = 5.0
MEBIBYTE: Final = 1024 * 1024


def test_a_short_text_stays_as_it_is() -> None:
    assert bound(Output(content="x" * INLINE_BYTES)) == overflow.Bounded(text="x" * INLINE_BYTES)


def test_of_a_long_text_the_beginning_stays_and_the_whole_is_stored() -> None:
    text = "x" * (INLINE_BYTES + 1)

    kept = bound(Output(content=text))

    assert kept.overflow == Overflow(content=text.encode(), is_text=True)
    assert kept.text == (
        "x" * INLINE_BYTES
        + "\n\n[Output cut: 1 of 32,769 bytes are not shown here. The whole output is stored.]"
    )


def test_bytes_are_stored_and_never_shown() -> None:
    kept = bound(Output(content=b"%PDF-1.7"))

    assert kept.text == "[Binary output of 8 bytes is stored and not shown here.]"
    assert kept.overflow == Overflow(content=b"%PDF-1.7", is_text=False)


def test_a_text_with_parts_that_are_no_text_is_stored_with_them() -> None:
    kept = bound(Output(content="a cat", whole=b"{}"))

    assert kept == overflow.Bounded(text="a cat", overflow=Overflow(content=b"{}", is_text=False))


@given(st.text(st.characters(), max_size=60), st.integers(1, 3))
def test_nothing_is_cut_in_the_middle_of_a_character_and_nothing_unstorable_stays(
    piece: str, extra: int
) -> None:
    text = piece * (extra * INLINE_BYTES // max(len(piece), 1))

    kept = bound(Output(content=text))

    kept.text.encode()
    assert "\x00" not in kept.text
    if kept.overflow is not None:
        shown = kept.text.partition("\n\n[Output cut")[0].encode()
        assert kept.overflow.content.startswith(shown)
        assert INLINE_BYTES - 4 < len(shown) <= INLINE_BYTES


@pytest.mark.parametrize(
    "content",
    [
        "x" * 50 * MEBIBYTE,
        "\U0001f600" * 12 * MEBIBYTE,
        "x" * 100 * MEBIBYTE,
        b"\x00\xff" * 25 * MEBIBYTE,
        b"\x00" * 100 * MEBIBYTE,
    ],
    ids=["50 MB", "50 MB of emoji", "100 MB", "50 MB of bytes", "100 MB of bytes"],
)
def test_a_huge_output_costs_little_time_and_a_few_times_its_memory(content: str | bytes) -> None:
    tracemalloc.start()
    started = time.perf_counter()
    try:
        kept = bound(Output(content=content))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert time.perf_counter() - started < SECONDS
    assert peak < 6 * STORED_BYTES
    assert kept.overflow is not None
    assert len(kept.overflow.content) <= STORED_BYTES
    assert len(kept.text.encode()) < INLINE_BYTES + 200
    if len(content) > STORED_BYTES:
        assert "67,108,864 bytes" in kept.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_what_overflows_is_stored_in_the_transaction_of_the_call() -> None:
    session_id = world.session()
    kept = bound(Output(content="ä" * INLINE_BYTES))
    assert kept.overflow is not None

    with session_transaction(session_id, now=world.NOW):
        overflow_id = overflow.store(session_id=session_id, overflow=kept.overflow, now=world.NOW)

    stored = ToolOverflow.objects.get(pk=overflow_id)
    assert bytes(stored.content) == ("ä" * INLINE_BYTES).encode()
    assert (stored.session_id, stored.is_text, stored.created_at) == (session_id, True, world.NOW)


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_a_transaction_that_fails_stores_nothing() -> None:
    session_id = world.session()

    with pytest.raises(IntegrityError), transaction.atomic():
        overflow.store(session_id=session_id, overflow=Overflow(content=b"x", is_text=False), now=world.NOW)
        raise IntegrityError

    assert not ToolOverflow.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_deleting_a_session_removes_what_it_stored_and_nothing_of_another() -> None:
    mine, other = world.session(), world.session()
    for session_id in (mine, other):
        with session_transaction(session_id, now=world.NOW):
            overflow.store(
                session_id=session_id, overflow=Overflow(content=b"x", is_text=False), now=world.NOW
            )

    sessions.delete(session_id=mine, now=world.NOW)

    assert list(ToolOverflow.objects.values_list("session_id", flat=True)) == [other]
