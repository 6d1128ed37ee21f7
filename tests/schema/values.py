"""Any value that a contract allows, made from its annotations."""

import types
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies
from hypothesis.strategies import SearchStrategy
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from schema.base import Contract

text = strategies.text(strategies.characters(exclude_categories=["Cs"], exclude_characters="\0"))
json_values = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


def any_of(kind: type[Contract]) -> SearchStrategy[Any]:
    """Any valid value of the contract; what may be absent sometimes is."""
    required = {name: _value(field) for name, field in kind.model_fields.items() if field.is_required()}
    optional = {name: _value(field) for name, field in kind.model_fields.items() if not field.is_required()}
    return strategies.fixed_dictionaries(required, optional=optional).map(lambda data: kind(**data))


def _value(field: FieldInfo) -> SearchStrategy[Any]:
    return _annotated(field.annotation)


def _annotated(annotation: Any) -> SearchStrategy[Any]:
    if annotation is JsonValue:
        return json_values
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return strategies.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return strategies.one_of(*[_annotated(argument) for argument in arguments])
    if origin is dict:
        return strategies.dictionaries(text, _annotated(arguments[1]), max_size=3)
    if origin is tuple:
        return strategies.lists(_annotated(arguments[0]), max_size=3).map(tuple)
    if isinstance(annotation, type) and issubclass(annotation, Contract):
        return any_of(annotation)
    simple: dict[Any, SearchStrategy[Any]] = {
        str: text,
        int: strategies.integers(),
        bool: strategies.booleans(),
        float: strategies.floats(allow_nan=False, allow_infinity=False),
        type(None): strategies.none(),
    }
    return simple[annotation]
