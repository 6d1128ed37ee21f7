"""Identities: prefixed, sortable by time; those that clients may choose, and those they may not."""

import pytest
from hypothesis import given, strategies

from schema import ids
from sessions_app import identity


@pytest.mark.parametrize("rest", ["abcdefgh", "A-9-bcdE", "0" * 64, "--------"])
def test_a_client_may_choose_8_to_64_letters_digits_and_dashes(rest: str) -> None:
    assert ids.is_client_session_id(f"ses_{rest}")
    assert ids.is_client_message_id(f"msg_{rest}")
    assert not ids.is_client_session_id(f"msg_{rest}")
    assert not ids.is_client_message_id(f"ses_{rest}")


@pytest.mark.parametrize(
    "rest",
    ["", "abcdefg", "0" * 65, "abcdefgh\n", "abc_defgh", "abc defgh", "abcdefgé", "abcdefg\0", "../../etc", "abcdefgh "],
)  # fmt: skip
def test_anything_else_is_no_id_of_a_client(rest: str) -> None:
    assert not ids.is_client_session_id(f"ses_{rest}")
    assert not ids.is_client_message_id(f"msg_{rest}")


@pytest.mark.parametrize("text", ["msg_rec-abcdefgh", "msg_rec-" + "0" * 60])
def test_ids_of_recovery_are_no_clients(text: str) -> None:
    assert not ids.is_client_message_id(text)
    assert ids.is_client_message_id(text.replace("rec-", "rec"))


@given(
    strategies.integers(0, 2**48 - 1),
    strategies.integers(0, 2**48 - 1),
    strategies.binary(min_size=10, max_size=10),
)
def test_ids_sort_by_the_time_they_were_made(first: int, second: int, entropy: bytes) -> None:
    earlier, later = sorted((first, second))

    made = [ids.compose(prefix="msg", milliseconds=time, entropy=entropy) for time in (earlier, later)]

    assert made == sorted(made)
    assert all(ids.is_client_message_id(each) for each in made)
    assert all(len(each) <= ids.MAX_LENGTH for each in made)


def test_new_ids_differ_carry_their_prefix_and_fit_their_column() -> None:
    makers = {
        "ses": identity.new_session_id, "msg": identity.new_message_id, "prt": identity.new_part_id,
        "att": identity.new_attempt_id, "wrk": identity.new_worker_id,
    }  # fmt: skip
    for prefix, make in makers.items():
        made = {make() for _ in range(500)}
        assert len(made) == 500
        assert all(each.startswith(f"{prefix}_") and len(each) <= ids.MAX_LENGTH for each in made)


def test_the_longest_id_of_a_client_fits_its_column() -> None:
    assert len("msg_" + "0" * 64) == ids.MAX_LENGTH
