import enum
import logging
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from sessions_app.tools.declare import BadDeclaration, declare, tool
from sessions_app.tools.enter import Failed, Succeeded
from sessions_app.tools.port import BadArguments, Output, Tool, ToolContext
from tests.tools.calls import call


class Colour(enum.Enum):
    RED = "red"


@tool(effect="read", timeout_seconds=5)
def paint(
    what: str,
    context: ToolContext,
    times: Annotated[int, Field(ge=1, le=9)] = 1,
    colour: Literal["red", "blue"] = "red",
    day: date | None = None,
    tags: list[str] = [],  # noqa: B006
) -> str:
    """Paint something.

    Twice, if need be.

    Args:
        what: The thing
            to paint.
        times: How often.

    Returns:
        Not for the model.
    """
    return f"{what} {times} {colour} {day!r} {tags} {context.call_id}"


def test_the_schema_comes_from_hints_and_docstring_and_is_closed() -> None:
    assert paint.name == "paint"
    assert paint.description == "Paint something.\n\nTwice, if need be."
    assert dict(paint.parameters) == {
        "type": "object",
        "properties": {
            "what": {"type": "string", "description": "The thing to paint."},
            "times": {
                "type": "integer",
                "minimum": 1,
                "maximum": 9,
                "default": 1,
                "description": "How often.",
            },
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["what"],
        "additionalProperties": False,
    }


def test_a_bare_decorator_declares_a_side_effect() -> None:
    @tool
    def act() -> str:
        """Act."""
        return ""

    assert act.effect == "side_effect"


def test_defaults_are_filled_in_and_the_result_is_plain_json() -> None:
    assert paint.normalise({"what": "wall", "day": "2031-05-04"}) == {
        "what": "wall", "times": 1, "colour": "red", "day": "2031-05-04", "tags": [],
    }  # fmt: skip


async def test_the_function_gets_python_values_and_the_context() -> None:
    assert await call(paint, what="wall", day="2031-05-04") == Succeeded(
        output=Output(content="wall 1 red datetime.date(2031, 5, 4) [] prt_1")
    )


def _nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels):
        value = [value]
    return value


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "what: is required"),
    ({"what": 3}, "what: Input should be a valid string"),
    ({"what": None}, "what: Input should be a valid string"),
    ({"what": "x", "times": "3"}, "times: Input should be a valid integer"),
    ({"what": "x", "times": 3.0}, "times: Input should be a valid integer"),
    ({"what": "x", "times": True}, "times: Input should be a valid integer"),
    ({"what": "x", "times": 0}, "times: Input should be greater than or equal to 1"),
    ({"what": "x", "colour": "green"}, "colour: Input should be 'red' or 'blue'"),
    ({"what": "x", "day": "tomorrow"}, "day: "),
    ({"what": "x", "tags": ["a", 1]}, "tags.1: Input should be a valid string"),
    ({"what": "x", "context": {}}, "context: there is no such argument"),
    ({"what": "x", "colour ": "red"}, "colour : there is no such argument"),
    ({"what": "x", "times": float("nan")}, "plain JSON"),
    ({"what": "x", "tags": _nested(5000)}, "plain JSON"),
    ({f"a{number}": 1 for number in range(1000)}, "and 996 more"),
    ({"what": "x", "y" * 100_000: 1}, "there is no such argument"),
]


@pytest.mark.parametrize(("arguments", "told"), REFUSED)
def test_arguments_that_do_not_fit_are_refused_in_words_for_the_model(
    arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadArguments) as refused:
        paint.normalise(arguments)

    text = str(refused.value)
    assert text.startswith("Invalid arguments for paint: ")
    assert told in text
    assert "http" not in text
    assert "pydantic" not in text
    assert len(text) < 2000


def test_what_cannot_be_stored_is_dropped_before_the_function_sees_it() -> None:
    assert paint.normalise({"what": "a\x00b\ud83d\ude00\ud800"})["what"] == "ab\U0001f600"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["what", "times", "colour", "day", "tags", "context", "other"])


@given(st.dictionaries(NAMES, JSON))
def test_whatever_is_given_is_refused_or_normalised_once_and_for_all(arguments: dict[str, Any]) -> None:
    try:
        normal = paint.normalise(arguments)
    except BadArguments:
        return
    assert paint.normalise(normal) == normal
    assert normal.keys() == {"what", "times", "colour", "day", "tags"}


def no_docstring(a: int) -> None: ...


def no_hint(a) -> None:
    """Do."""


def positional(a: int, /) -> None:
    """Do."""


def variadic(*a: int) -> None:
    """Do."""


def described_wrongly(a: int) -> None:
    """Do.

    Args:
        b: Not there.
    """


def without_schema(a: object) -> None:
    """Do."""


class Opaque:
    pass


def opaque(a: Opaque) -> None:
    """Do."""


@pytest.mark.parametrize("function", [no_docstring, no_hint, positional, variadic, described_wrongly, opaque])
def test_a_function_that_cannot_be_a_tool_is_refused_at_its_declaration(function: Any) -> None:
    with pytest.raises(BadDeclaration, match=function.__name__):
        declare(function)


@pytest.mark.parametrize("name", ["", "1st", "-a", "a.b", "a b", "x" * 65, "a\n"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(BadDeclaration, match="name"):
        declare(paint_nothing, name=name)


def paint_nothing() -> None:
    """Do nothing."""


def _returning(value: Any) -> Tool:
    def give() -> Any:
        """Give."""
        return value

    return declare(give)


@pytest.mark.parametrize(
    ("returned", "content"),
    [
        ("text", "text"),
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"\x01"), b"\x01"),
        (None, "Done."),
        ({"a": [1, None, "ä"]}, '{"a":[1,null,"ä"]}'),
        ([date(2031, 5, 4), Colour.RED], '["2031-05-04","red"]'),
        (3.5, "3.5"),
        (Output(content="as is"), "as is"),
    ],
)
async def test_what_a_function_returns_is_text_bytes_or_json(returned: Any, content: str | bytes) -> None:
    entered = await call(_returning(returned))

    assert isinstance(entered, Succeeded)
    assert entered.output.content == content


async def test_what_is_no_json_is_a_failure_of_the_tool() -> None:
    entered = await call(_returning(object()))

    assert isinstance(entered, Failed)
    assert entered.known


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


RAISED = [
    (ValueError("no funds"), "no funds"),
    (ValueError(), "ValueError"),
    (ValueError("x" * 1_000_000), "x..."),
    (ValueError("a\x00b\ud800"), "ab"),
    (Unspeakable(), "Unspeakable"),
    (StopIteration(), "StopIteration"),
    (SystemExit(3), "3"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (TimeoutError("late"), "late"),
]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("error", "told"), RAISED, ids=lambda each: type(each).__name__)
async def test_what_a_function_raises_is_told_to_the_model_and_its_text_not_to_the_log(
    error: BaseException, told: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def sync() -> None:
        """Raise."""
        raise error

    async def asynchronous() -> None:
        """Raise."""
        raise error

    if is_async and isinstance(error, StopIteration):
        told = "coroutine raised StopIteration"
    with caplog.at_level(logging.DEBUG):
        entered = await call(declare(asynchronous if is_async else sync))

    assert isinstance(entered, Failed)
    assert entered.known
    assert entered.error.startswith("Tool execution failed: ")
    assert entered.error.endswith(told)
    assert len(entered.error) < 2100
    assert "Traceback" not in entered.error
    assert "no funds" not in caplog.text
