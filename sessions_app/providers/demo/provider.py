"""The provider ``demo:scripted``: deterministic answers, streamed word by word, without a network."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Final

from schema.attempts import AttemptError, ErrorClass, Reason, Usage
from schema.turns import AssistantTurn, Turn
from sessions_app.providers import port
from sessions_app.providers.demo import scene
from sessions_app.providers.demo.scene import Scene
from sessions_app.providers.demo.script import FailureName

RATE_LIMIT_SECONDS: Final = 1.0

_ERRORS: Final[dict[FailureName, tuple[ErrorClass, Reason, int | None, str]]] = {
    "not_sent": ("not_sent", "network", None, "The demo was asked not to be reachable."),
    "rejected": ("rejected", "bad_request", 400, "The demo was asked to reject the request."),
    "rate_limit": ("rejected", "rate_limit", 429, "The demo was asked to be rate limited."),
    "overflow": ("rejected", "overflow", 400, "The demo was asked to find the history too long."),
    "failed": ("failed", "provider_error", 200, "The demo was asked to fail in its answer."),
    "ambiguous": ("ambiguous", "cut", None, "The demo was asked to go silent after the request."),
    "partial": ("partial", "cut", 200, "The demo was asked to break off its answer."),
}
_TELLS_ITS_STATUS: Final = frozenset({"rejected", "rate_limit", "overflow"})
_BREAKS_OFF: Final = frozenset({"failed", "partial"})


class ScriptedDemo:
    """Says what the newest user message scripts; see ``demo.script`` for the directives."""

    name = "demo"

    def digest(self, request: port.ModelRequest) -> str:
        body = {
            "model": request.model,
            "system": request.system,
            "turns": [turn.to_json() for turn in request.turns],
            "tools": [tool.to_json() for tool in request.tools],
        }
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

    async def stream(self, request: port.ModelRequest, phases: port.Phases) -> AsyncGenerator[port.Item]:
        """Play one step of the script.

        Equal requests give equal items, so that a conversation that crashed goes on as if it had not:
        words that the history already holds are not said again.
        """
        stage = scene.stage(turns=request.turns, earlier_attempts=request.earlier_attempts)
        failure = _failure_now(stage)
        if failure == "not_sent":
            raise _error(failure)
        await phases.dispatching()
        if failure == "ambiguous":
            raise _error(failure)
        status = 200 if failure is None else _ERRORS[failure][2] or 200
        await phases.response_started(status=status, request_id=f"demo-{request.attempt}", headers={})
        if failure in _TELLS_ITS_STATUS:
            raise _error(failure)
        yield port.ResponseIdentified(f"demo-{request.attempt}")
        async with aclosing(_performance(request, stage, failure)) as items:
            async for item in items:
                yield item


async def _performance(
    request: port.ModelRequest, stage: Scene, failure: FailureName | None
) -> AsyncGenerator[port.Item]:
    script = stage.script
    if script.reason and not stage.said:
        for word in scene.split(script.reason):
            await _pause(script.delay)
            yield port.ReasoningDelta("reasoning", word)
        yield port.PartClosed("reasoning")
    spoken = 0
    for word in _audible(stage, failure):
        await _pause(script.delay)
        yield port.TextDelta("text", word)
        spoken += 1
    if failure is not None:
        raise _error(failure, usage=_usage(request, spoken))
    if script.hang:
        await asyncio.get_running_loop().create_future()
    if spoken:
        yield port.PartClosed("text")
    for item in _calls(request, stage):
        yield item
    finish = "tool_calls" if script.calls else "stop"
    yield port.Finished(finish, _usage(request, spoken))


def _audible(stage: Scene, failure: FailureName | None) -> Iterator[str]:
    """The words that leave before the script stops: all, the first, or the first half."""
    if failure in _BREAKS_OFF:
        left = sum(1 for _ in stage.words())
        return islice(stage.words(), (left + 1) // 2)
    return islice(stage.words(), 1 if stage.script.hang else None)


def _calls(request: port.ModelRequest, stage: Scene) -> Iterator[port.Item]:
    for index, call in enumerate(stage.script.calls):
        key = f"call:{index}"
        call_id = f"call_{request.attempt.removeprefix('att_')}_{index}"
        yield port.CallStarted(key, call_id, call.name)
        yield port.CallDelta(key, call.arguments)
        yield port.PartClosed(key)


def _failure_now(stage: Scene) -> FailureName | None:
    failure = stage.script.failure
    if failure is None or not failure.strikes(attempts_before=stage.attempts_before):
        return None
    return failure.name


def _error(name: FailureName, usage: Usage | None = None) -> port.ProviderError:
    error_class, reason, status, message = _ERRORS[name]
    error = AttemptError(
        error_class=error_class,
        reason=reason,
        message=message,
        status=status if name in _TELLS_ITS_STATUS else None,
        retry_after=RATE_LIMIT_SECONDS if name == "rate_limit" else None,
    )
    return port.ProviderError(error, usage=usage)


async def _pause(seconds: float) -> None:
    """Let others run, also when there is nothing to wait for."""
    await asyncio.sleep(seconds)


def _usage(request: port.ModelRequest, spoken: int) -> Usage:
    return Usage(input_tokens=sum(map(_tokens, request.turns)), output_tokens=spoken)


def _tokens(turn: Turn) -> int:
    """A word counts as a token."""
    if isinstance(turn, AssistantTurn):
        return sum(len(block.text.split()) for block in turn.blocks if block.kind == "text")
    return len((turn.text if turn.role == "user" else turn.output).split())
