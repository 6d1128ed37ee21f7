"""Arguments are what the model wrote, or nothing at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.events import ToolCalled
from sessions_app.tools import arguments


@pytest.mark.parametrize("raw", ["", " \n", "{}"])
def test_blank_means_no_arguments(raw: str) -> None:
    assert arguments.parse(raw) == {}


@pytest.mark.parametrize(
    "raw",
    [
        "null",
        "[]",
        '"x"',
        "7",
        '{"a":',
        '{"a":"x',
        "{}{}",
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":' + "[" * 200 + "]" * 200 + "}",
        '{"a":' + "[" * 100_000,
    ],
)
def test_anything_but_one_whole_object_is_none(raw: str) -> None:
    assert arguments.parse(raw) is None


def test_escapes_are_cleaned_like_raw_text() -> None:
    assert arguments.parse(r'{"a\u0000":["x\ud800","\ud83c\udf0d"]}') == {"a": ["x", "🌍"]}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES).map(json.dumps) | st.text())
def test_what_is_read_can_be_stored_and_sent(raw: str) -> None:
    read = arguments.parse(raw)
    if read is not None:
        ToolCalled(message="m", part="p", input=read, input_digest="d", effect="read")
        sent = json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
        assert b"\x00" not in sent
        assert json.loads(sent) == read


@given(st.dictionaries(st.text(alphabet="aü🌍"), st.lists(st.integers() | st.text(alphabet='"\\x'))))
def test_clean_arguments_come_back_as_they_were(written: dict[str, Any]) -> None:
    assert arguments.parse(json.dumps(written)) == written
