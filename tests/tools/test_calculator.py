import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.tools.builtin import calculator as module
from sessions_app.tools.builtin.calculator import BadExpression, calculate, calculator, shown
from sessions_app.tools.enter import Failed, Succeeded
from tests.tools.calls import call

QUICK: Final = 1.0

RIGHT = [
    ("6*7", "42"),
    (" 1 + 2 * 3 ", "7"),
    ("0.1+0.2", "0.3"),
    ("7//2", "3"),
    ("-7 % 3", "2"),
    ("2**10", "1024"),
    ("2**-3", "0.125"),
    ("2**0.5", "1.4142135623731"),
    ("(1+2)*(3+4)/7", "3.0"),
    ("1e3", "1000.0"),
    ("factorial(20)", "2432902008176640000"),
    ("sqrt(16) + cbrt(27)", "7.0"),
    ("round(2.567, 2)", "2.57"),
    ("round(2.5)", "2"),
    ("max(1, 2.5, 2)", "2.5"),
    ("sum(1, 2, 3)", "6"),
    ("comb(49, 6)", "13983816"),
    ("gcd(12, 18) * lcm(4, 6)", "72"),
    ("log(8, 2)", "3.0"),
    ("sin(pi/2)", "1.0"),
    ("1 < 2 < 3", "True"),
    ("abs(-3)", "3"),
    ("+".join(["1"] * 200), "200"),
    ("9" * 900, "9" * 900),
]


@pytest.mark.parametrize(("expression", "value"), RIGHT)
def test_arithmetic_is_calculated(expression: str, value: str) -> None:
    assert shown(calculate(expression)) == value


WRONG = [
    ("1/0", "Division by zero"),
    ("2^3", "**"),
    ("sqrt(-1)", "cannot be calculated"),
    ("(-8)**0.5", "not a real number"),
    ("foo + 1", "no constant 'foo'"),
    ("foo(1)", "no function 'foo'"),
    ("1 +", "not an arithmetic expression"),
    ("", "not an arithmetic expression"),
    ("x = 1", "not an arithmetic expression"),
    ("1; 2", "not an arithmetic expression"),
    ("1e308 * 10", "too large"),
    ("exp(1000)", "too large"),
    ("sqrt(1, 2, 3)", "cannot be calculated"),
    ("__import__('os').system('true')", "Only numbers"),
    ("().__class__", "Only numbers"),
    ("pi.__class__", "Only numbers"),
    ("'a' * 10", "Only numbers"),
    ("[1] * 10", "Only numbers"),
    ("{1: 2}", "Only numbers"),
    ("f'{1}'", "Only numbers"),
    ("lambda: 1", "Only numbers"),
    ("[x for x in (1, 2)]", "Only numbers"),
    ("max(*(1, 2))", "Only numbers"),
    ("round(1.5, digits=1)", "Only numbers"),
    ("sqrt", "no constant 'sqrt'"),
    ("1 if 1 else 2", "Only numbers"),
    ("1 << 100", "Only numbers"),
    ("\x00", "not an arithmetic expression"),
    ("1" * 1001, "longer than"),
]


@pytest.mark.parametrize(("expression", "reason"), WRONG)
def test_anything_else_is_refused_with_a_reason(expression: str, reason: str) -> None:
    with pytest.raises(BadExpression) as refused:
        calculate(expression)

    assert reason in str(refused.value)
    assert len(str(refused.value)) < 500


HUGE = [
    "9**9**9",
    "9**9**9**9",
    "(9**999)**999",
    "10**4000 * 10**4000",
    "*".join(["9**999"] * 100),
    "factorial(10**9)",
    "factorial(1000) ** 100",
    "factorial(999999999999)",
    "comb(10**9, 10**8)",
    "perm(10**6, 10**6)",
    "lcm(" + ",".join(f"{n}**99" for n in range(100, 190)) + ")",
    "round(5, -10**9)",
    "round(5.5, 10**9)",
    "1e999",
    "2**(10**300)",
    "(-2)**(10**300)",
    "1.5**(10**300)",
    "-" * 990 + "1",
    "(" * 300 + "1" + ")" * 300,
    "1" + "+1" * 490,
    "abs(" * 190 + "1" + ")" * 190 + "/0",
]


@pytest.mark.parametrize("expression", HUGE, ids=lambda text: text[:20])
def test_what_would_take_for_ever_or_all_memory_is_refused_at_once(expression: str) -> None:
    started = time.perf_counter()

    with pytest.raises(BadExpression):
        calculate(expression)

    assert time.perf_counter() - started < QUICK


ATOMS = st.sampled_from(["9", "99999", "0", "1.5", "pi", "e", "1e300"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
            lambda parts: f"({parts[0]}{parts[1]}{parts[2]})"
        ),
        st.tuples(st.sampled_from(sorted(module._FUNCTIONS)), st.lists(inner, min_size=1, max_size=3)).map(
            lambda parts: f"{parts[0]}({','.join(parts[1])})"
        ),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS)
def test_whatever_is_asked_the_answer_is_quick_and_short(expression: str) -> None:
    started = time.perf_counter()
    try:
        answer = shown(calculate(expression))
    except BadExpression as refused:
        answer = str(refused)

    assert len(answer) <= module.MAX_DIGITS + 2
    assert time.perf_counter() - started < QUICK


async def test_the_tool_answers_with_text_and_tells_the_model_what_is_wrong() -> None:
    answered = await call(calculator, expression="6*7")
    refused = await call(calculator, expression="1/0")

    assert isinstance(answered, Succeeded)
    assert answered.output.content == "42"
    assert refused == Failed(error="Tool execution failed: Division by zero.", known=True)
