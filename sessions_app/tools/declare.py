"""Declares a typed Python function as a tool."""

import asyncio
import inspect
import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, get_type_hints, overload

import pydantic
from pydantic import JsonValue
from pydantic_core import to_json

from schema.events import Effect
from schema.text import clean
from sessions_app.tools import docstrings, threads
from sessions_app.tools.port import (
    DEFAULT_TIMEOUT_SECONDS,
    BadArguments,
    Enter,
    Input,
    OutcomeUnknown,
    Output,
    Reconcile,
    Tool,
    ToolContext,
)

logger = logging.getLogger(__name__)

NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")
MAX_ERROR_CHARACTERS: Final = 2000
MAX_FAULTS_TOLD: Final = 5
_MAX_FAULT_CHARACTERS: Final = 300
_WAIT_FOR_THREAD_SECONDS: Final = 10.0

THREADS: Final = threads.ToolThreads()

Function = Callable[..., Any]


class BadDeclaration(Exception):
    """A function cannot be a tool as it is written; the text says what to change."""

    def __init__(self, *, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"The tool {name!r} cannot be declared: {why}.")


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    effect: Effect = "side_effect",
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    reconcile: Reconcile | None = None,
) -> Callable[[Function], Tool]: ...


def tool(function: Function | None = None, /, **options: Any) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a function: ``@tool`` or ``@tool(effect="read")``. See ``declare``."""
    if function is not None:
        return declare(function, **options)
    return lambda declared: declare(declared, **options)


def declare(
    function: Function,
    *,
    name: str | None = None,
    effect: Effect = "side_effect",
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    reconcile: Reconcile | None = None,
) -> Tool:
    """A tool that calls the function.

    The schema comes from its type hints, the descriptions from its docstring (section ``Args:``). A parameter
    annotated ToolContext is given the context and is not part of the schema. A plain function runs in a
    thread, a coroutine function on the loop. It returns text, bytes, an Output, or anything that is JSON.

    Raises BadDeclaration.
    """
    signature = _Signature(function, name=str(getattr(function, "__name__", "")) if name is None else name)
    if timeout_seconds <= 0:
        raise BadDeclaration(name=signature.name, why="its timeout must be more than zero seconds")
    return Tool(
        name=signature.name,
        description=signature.description,
        parameters=signature.parameters(),
        effect=effect,
        normalise=signature.normalise,
        enter=_entrance(function, signature, timeout_seconds),
        timeout_seconds=timeout_seconds,
        reconcile=reconcile,
    )


class _Signature:
    """What a function takes, as a closed and strict model of its arguments."""

    def __init__(self, function: Function, *, name: str) -> None:
        if not NAME.match(name):
            raise BadDeclaration(
                name=name, why="a name is a letter or _, then up to 63 letters, digits, _ and -"
            )
        self.name = name
        self._hints = _hints(function, name)
        described = docstrings.read(function.__doc__)
        self.description = described.text
        if not self.description:
            raise BadDeclaration(name=name, why="it needs a docstring, which tells the model what it does")
        self.context_parameter: str | None = None
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            self._add(parameter, fields, described.arguments)
        if unknown := described.arguments.keys() - fields.keys() - {self.context_parameter}:
            raise BadDeclaration(
                name=name, why=f"its docstring describes {', '.join(sorted(unknown))}, which it does not take"
            )
        self._model = _model(name, fields)

    def _add(self, parameter: inspect.Parameter, fields: dict[str, Any], texts: Mapping[str, str]) -> None:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadDeclaration(name=self.name, why=f"{parameter} cannot be passed by name")
        hint = self._hints.get(parameter.name)
        if hint is None:
            raise BadDeclaration(name=self.name, why=f"its parameter {parameter.name} has no type hint")
        if hint is ToolContext:
            self.context_parameter = parameter.name
            return
        default = ... if parameter.default is parameter.empty else parameter.default
        if text := texts.get(parameter.name):
            fields[parameter.name] = (hint, pydantic.Field(default, description=text))
        else:
            fields[parameter.name] = (hint, default)

    def parameters(self) -> dict[str, JsonValue]:
        schema = self._model.model_json_schema()
        schema.pop("title", None)
        for described in schema.setdefault("properties", {}).values():
            described.pop("title", None)
        schema["additionalProperties"] = False
        return schema

    def normalise(self, given: Input) -> Input:
        """The arguments as plain JSON data with defaults filled in, in the function's order.

        Raises BadArguments with a text for the model; nothing is converted or guessed.
        """
        normal: Input = self._parse(given).model_dump(mode="json")
        return normal

    def arguments(self, given: Input) -> dict[str, Any]:
        """The arguments as the function takes them. Raises BadArguments."""
        parsed = self._parse(given)
        return {field: getattr(parsed, field) for field in type(parsed).model_fields}

    def _parse(self, given: Input) -> pydantic.BaseModel:
        try:
            # From JSON text: strict, yet a date or an enum may be written as JSON writes it.
            return self._model.model_validate_json(json.dumps(_cleaned(given), allow_nan=False))
        except pydantic.ValidationError as refused:
            raise BadArguments(_told(self.name, refused)) from None
        except (ValueError, TypeError, RecursionError):
            raise BadArguments(
                f"Invalid arguments for {self.name}: they are not plain JSON of a reasonable depth."
            ) from None


def _hints(function: Function, name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise BadDeclaration(name=name, why=f"its type hints cannot be resolved ({error})") from None


def _model(name: str, fields: dict[str, Any]) -> type[pydantic.BaseModel]:
    config = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    try:
        model: type[pydantic.BaseModel] = pydantic.create_model(name, __config__=config, **fields)
        model.model_json_schema()
    except (pydantic.PydanticUserError, NameError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BadDeclaration(name=name, why=f"its arguments have no JSON schema ({reason})") from None
    return model


def _cleaned(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
        case _:
            return value


def _told(name: str, refused: pydantic.ValidationError) -> str:
    """What is wrong, argument by argument, without what pydantic adds for programmers."""
    faults = refused.errors(include_url=False, include_context=False, include_input=False)
    told = [_fault(fault["type"], ".".join(map(str, fault["loc"])), fault["msg"]) for fault in faults]
    shown = "; ".join(told[:MAX_FAULTS_TOLD])
    more = f"; and {len(told) - MAX_FAULTS_TOLD} more" if len(told) > MAX_FAULTS_TOLD else ""
    return f"Invalid arguments for {name}: {shown}{more}."


def _fault(kind: str, where: str, message: str) -> str:
    place = bounded(where, 100)
    if kind == "extra_forbidden":
        return f"{place}: there is no such argument"
    if kind == "missing":
        return f"{place}: is required"
    return bounded(f"{place}: {message}" if place else message, _MAX_FAULT_CHARACTERS)


def bounded(text: str, characters: int) -> str:
    """The text, or its beginning and three dots."""
    return text if len(text) <= characters else f"{text[: characters - 3]}..."


def _entrance(function: Function, signature: _Signature, timeout_seconds: float) -> Enter:
    if inspect.iscoroutinefunction(function):
        return _AsyncEntrance(function, signature)
    return _ThreadEntrance(function, signature, timeout_seconds)


class _Entrance:
    """Calls the function with a normalised input."""

    def __init__(self, function: Function, signature: _Signature) -> None:
        self._function = function
        self._signature = signature

    def _arguments(self, given: Input, context: ToolContext) -> dict[str, Any]:
        arguments = self._signature.arguments(given)
        if self._signature.context_parameter is not None:
            arguments[self._signature.context_parameter] = context
        return arguments


class _AsyncEntrance(_Entrance):
    async def __call__(self, given: Input, context: ToolContext) -> Output:
        try:
            return _output(await self._function(**self._arguments(given, context)))
        except (asyncio.CancelledError, GeneratorExit, OutcomeUnknown):
            raise
        except BaseException as error:  # noqa: BLE001  SystemExit would end the loop of every other drain
            return failed(error, name=self._signature.name)


class _ThreadEntrance(_Entrance):
    def __init__(self, function: Function, signature: _Signature, timeout_seconds: float) -> None:
        super().__init__(function, signature)
        # Shorter than the call's own time, so that a call that waited in vain is known not to have run.
        self._wait_seconds = min(_WAIT_FOR_THREAD_SECONDS, timeout_seconds / 2)

    async def __call__(self, given: Input, context: ToolContext) -> Output:
        try:
            return await THREADS.run(
                lambda: self._run(given, context), name=self._signature.name, wait_seconds=self._wait_seconds
            )
        except threads.NoThread:
            return Output(
                content="The tool was not run: too many other tools of this worker are still running.",
                is_error=True,
            )

    def _run(self, given: Input, context: ToolContext) -> Output:
        try:
            return _output(self._function(**self._arguments(given, context)))
        except OutcomeUnknown:
            raise
        except BaseException as error:  # noqa: BLE001  the same as on the loop
            return failed(error, name=self._signature.name)


def _output(result: Any) -> Output:
    match result:
        case Output():
            return result
        case str() | bytes():
            return Output(content=result)
        case bytearray() | memoryview():
            return Output(content=bytes(result))
        case None:
            return Output(content="Done.")
        case _:
            return Output(content=to_json(result, inf_nan_mode="constants").decode())


def failed(error: BaseException, *, name: str) -> Output:
    """What the model is told of a function that raised. The log gets the kind of the error, not its text."""
    logger.info("tools.function.raised", extra={"tool": name, "error": type(error).__name__})
    return Output(content=f"Tool execution failed: {_message(error)}", is_error=True)


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an exception whose own text fails
        text = ""
    return bounded(clean(text).strip() or type(error).__name__, MAX_ERROR_CHARACTERS)
