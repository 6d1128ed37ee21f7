"""Arithmetic on an expression that somebody else wrote: exact where it can be, bounded always."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Final

import simpleeval

from sessions_app.tools.declare import tool

MAX_CHARACTERS: Final = 1000
MAX_DIGITS: Final = 4000
_MAX_BITS: Final = int(MAX_DIGITS * math.log2(10)) + 1
_MAX_DEPTH: Final = 250

Number = int | float


class BadExpression(Exception):
    """The expression cannot be calculated; the text says why."""


@tool(effect="read", timeout_seconds=10)
def calculator(expression: str) -> str:
    """Calculate an arithmetic expression.

    Knows + - * / // % ** ( ), comparisons, the constants pi, e and tau, and the functions abs, round, min, max,
    sum, floor, ceil, trunc, sqrt, cbrt, exp, log(x, base), ln, log2, log10, sin, cos, tan, asin, acos, atan,
    atan2, sinh, cosh, tanh, degrees, radians, hypot, factorial, comb, perm, gcd and lcm. Angles are in
    radians. Whole numbers are exact up to 4000 digits.

    Args:
        expression: The expression, such as (3 + 4) * 2 ** 10 or sqrt(2) / 2.
    """
    return shown(calculate(expression))


def calculate(expression: str) -> Number:
    """The value of the expression. Raises BadExpression; takes milliseconds whatever is asked."""
    tree = _parsed(expression)
    evaluator = simpleeval.SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
    try:
        return _bounded(evaluator.eval(expression, previously_parsed=tree))
    except ZeroDivisionError:
        raise BadExpression("Division by zero.") from None
    except OverflowError:
        raise BadExpression("The result is too large.") from None
    except (ValueError, TypeError) as error:
        raise BadExpression(f"This cannot be calculated: {error}.") from None
    except RecursionError:
        raise BadExpression("The expression is nested too deep.") from None
    except simpleeval.InvalidExpression as error:
        raise BadExpression(_reason(error)) from None


def shown(value: Number) -> str:
    """The value as people write it: 0.3, not 0.30000000000000004."""
    if isinstance(value, float):
        return repr(float(f"{value:.15g}"))
    return str(value)


def _parsed(expression: str) -> ast.expr:
    text = expression.strip()
    if len(text) > MAX_CHARACTERS:
        raise BadExpression(f"The expression is longer than {MAX_CHARACTERS} characters.")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BadExpression("This is not an arithmetic expression.") from None
    _check(tree.body)
    return tree.body


def _check(tree: ast.expr) -> None:
    """Only arithmetic, and not too deep for the evaluator, which calls itself for each level."""
    level: list[ast.expr] = [tree]
    for _ in range(_MAX_DEPTH):
        if not level:
            return
        level = [child for node in level for child in _operands(node)]
    raise BadExpression(f"The expression is nested deeper than {_MAX_DEPTH} levels.")


def _operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Constant(value=int() | float()):
            return []
        case ast.Name(id=name):
            return _constant(name)
        case ast.BinOp(left=left, op=how, right=right):
            if isinstance(how, ast.BitXor):
                raise BadExpression("^ is not a power here. Write ** for powers.")
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(func=ast.Name(), args=arguments, keywords=[]):
            return arguments
        case _:
            raise BadExpression("Only numbers, operators, constants and functions can be used.")


def _constant(name: str) -> list[ast.expr]:
    if name not in _NAMES:
        raise BadExpression(f"There is no constant {name!r}. There are {', '.join(sorted(_NAMES))}.")
    return []


def _reason(error: simpleeval.InvalidExpression) -> str:
    if isinstance(error, simpleeval.FunctionNotDefined):
        return f"There is no function {error.func_name!r}. There are {', '.join(sorted(_FUNCTIONS))}."
    return "Only numbers, operators, constants and functions can be used."


def _bounded(value: Any) -> Number:
    """The value, unless it is no real number or one that is too long."""
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise BadExpression(f"The result has more than {MAX_DIGITS} digits.")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError
        return value
    raise BadExpression("The result is not a real number.")


def _limited(function: Callable[..., Any]) -> Callable[..., Number]:
    """For what cannot make more of its operands than their lengths added up."""
    return lambda *operands: _bounded(function(*operands))


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        # log2(base) * exponent is the length of the result; known before it is calculated.
        if exponent > 0 and math.log2(abs(base)) * exponent > _MAX_BITS:
            raise BadExpression(f"The result has more than {MAX_DIGITS} digits.")
        if exponent < 0:
            return float(base) ** exponent
    return _bounded(base**exponent)


def _small(function: Callable[..., int], limit: int) -> Callable[..., Number]:
    """For functions whose cost grows with the value of their arguments."""

    def of(*values: int) -> Number:
        if any(abs(value) > limit for value in values):
            raise BadExpression(f"This function takes numbers up to {limit}.")
        return _bounded(function(*values))

    return of


def _round(value: Number, digits: int = 0) -> Number:
    if abs(digits) > MAX_DIGITS:
        raise BadExpression(f"round takes up to {MAX_DIGITS} digits.")
    return _bounded(round(value, digits) if digits else round(value))


_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: _limited(operator.add),
    ast.Sub: _limited(operator.sub),
    ast.Mult: _limited(operator.mul),
    ast.Div: _limited(operator.truediv),
    ast.FloorDiv: _limited(operator.floordiv),
    ast.Mod: _limited(operator.mod),
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": abs,
    "round": _round,
    "min": min,
    "max": max,
    "sum": _limited(lambda *values: sum(values)),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "exp": math.exp,
    "log": math.log,
    "ln": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "degrees": math.degrees,
    "radians": math.radians,
    "hypot": math.hypot,
    "factorial": _small(math.factorial, 1000),
    "comb": _small(math.comb, 5000),
    "perm": _small(math.perm, 5000),
    "gcd": math.gcd,
    "lcm": _limited(math.lcm),
}

_NAMES: Final = {"pi": math.pi, "e": math.e, "tau": math.tau}
